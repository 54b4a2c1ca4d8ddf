"""The two listeners, before a call and after it. Hooks of a stage run at the same time; the strictest answer counts."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import trio
from attrs import evolve, frozen
from dsh_hookspecs import (
    Ask,
    Block,
    Context,
    ContextMessage,
    Deny,
    PostToolDecision,
    PreToolDecision,
    ToolExecution,
    ToolExecutionResult,
)

from dsh_plugin_hooks_command._answers import Output, after, before
from dsh_plugin_hooks_command._config import Config, Hook
from dsh_plugin_hooks_command._run import environment, run_hook
from dsh_plugin_hooks_command._settings import read_settings

T = TypeVar("T")


def apply(ctx: Context, config: Config) -> None:
    """Listen before and after every call, for which there are hooks."""
    pre, post = config.pre_tool_use, config.post_tool_use
    if config.settings is not None:
        more_pre, more_post = read_settings(Path(config.settings).expanduser())
        pre, post = (*pre, *more_pre), (*post, *more_post)
    policy = _Policy(config, pre, post)
    if pre:
        ctx.on("tools/pre-execute", policy.before)
    if post:
        ctx.on("tools/post-execute", policy.after)


@frozen
class _Policy:
    config: Config
    pre: Sequence[Hook]
    post: Sequence[Hook]

    async def before(self, exec: ToolExecution, next: Callable[[], Awaitable[PreToolDecision]]) -> PreToolDecision:
        """Deny if one hook denies, ask if one asks; else nothing is said against the call."""
        given = self._given("PreToolUse", exec)
        answers = await self._ask(self.pre, exec.name, given, before)
        for answer in answers:
            if answer.decision == "deny":
                return Deny(answer.reason)
        for answer in answers:
            if answer.decision == "ask":
                return Ask(answer.reason)
        return await next()

    async def after(
        self,
        exec: ToolExecution,
        result: ToolExecutionResult,
        next: Callable[[], Awaitable[PostToolDecision]],
    ) -> PostToolDecision:
        """Block if one hook blocks; add what hooks remark."""
        given = self._given("PostToolUse", exec, tool_response=_response(result))
        answers = await self._ask(self.post, exec.name, given, after)
        blocks = [answer.feedback for answer in answers if answer.feedback is not None]
        if blocks:
            return Block(feedback="\n".join(blocks))
        remarks = tuple(_remark(answer.remark) for answer in answers if answer.remark)
        decision = await next()
        if not remarks:
            return decision
        return evolve(decision, additional_contexts=(*remarks, *decision.additional_contexts))

    async def _ask(self, hooks: Sequence[Hook], tool: str, given: bytes, read: Callable[[Output, str], T]) -> list[T]:
        name = self._name(tool)
        concerned = [hook for hook in hooks if hook.concerns(name)]
        answers: dict[int, T] = {}

        async def ask(number: int, hook: Hook) -> None:
            subject = f"the hook {hook.command!r:.200}"
            folder = self.config.cwd or os.getcwd()
            env = environment(self.config.env, folder)
            output = await run_hook(hook, given, env, folder, self.config.max_output_bytes, subject)
            answers[number] = read(output, subject)

        async with trio.open_nursery() as nursery:
            for number, hook in enumerate(concerned):
                nursery.start_soon(ask, number, hook)
        return [answers[number] for number in sorted(answers)]

    def _given(self, event: str, execution: ToolExecution, **more: Any) -> bytes:
        """What a hook reads on its stdin."""
        document = {
            "hook_event_name": event,
            "session_id": str(execution.agent) if execution.agent is not None else "",
            "transcript_path": "",
            "cwd": self.config.cwd or os.getcwd(),
            "tool_name": self._name(execution.name),
            "tool_input": execution.arguments,
            "tool_use_id": execution.call_id,
            "dry_run": execution.dry_run,
            **more,
        }
        return json.dumps(document).encode()

    def _name(self, tool: str) -> str:
        return self.config.tool_names.get(tool, tool)


def _response(result: ToolExecutionResult) -> Any:
    if result.is_error:
        return {"is_error": True, "error": result.error.message, "content": result.content}
    return result.value if isinstance(result.value, dict) else {"content": result.content}


def _remark(text: str) -> ContextMessage:
    return ContextMessage(content=[{"type": "text", "text": text}], source="hooks-command")
