"""A plugin that tells what each stage of a call has decided, as it happens, and changes nothing."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Literal

from attrs import evolve, field, frozen
from dsh_hookspecs import (
    Accept,
    ApprovalOutcome,
    Block,
    Context,
    PostToolDecision,
    PreToolDecision,
    ToolDispatchExecution,
    ToolExecution,
    ToolExecutionFailure,
    ToolExecutionResult,
)


@frozen
class Seen:
    """What one stage did: an outcome in a word, more about it, and the plugin that decided, where that is known."""

    stage: str
    outcome: str
    detail: str = ""
    plugin: str | None = None

    def document(self) -> dict[str, str | None]:
        """The same for a program."""
        return {"stage": self.stage, "outcome": self.outcome, "detail": self.detail, "plugin": self.plugin}


@frozen(eq=False)
class Watcher:
    """Stands in front of every other listener and hands on what they answer."""

    report: Callable[[Seen], None]
    clock: Callable[[], float] = field(default=time.perf_counter)
    name: str = "watcher"

    def apply(self, ctx: Context) -> None:
        """Listen to every stage."""
        ctx.on("tools/pre-execute", self.decided, prepend=True)
        ctx.on("approval/decided", self.answered)
        ctx.on("tools/execute", self.ran, prepend=True)
        ctx.on("tools/post-execute", self.accepted, prepend=True)
        ctx.on("tools/result", self.ended, prepend=True)

    async def decided(self, next: Callable[[], Awaitable[PreToolDecision]]) -> PreToolDecision:
        """Before the body: allow, deny or ask."""
        decision = await next()
        reason = getattr(decision, "reason", None) or ""
        self.report(Seen("pre-execute", type(decision).__name__.lower(), reason))
        return decision

    def answered(self, outcome: ApprovalOutcome | Literal["failed"], channel: str | None) -> None:
        """A person was to be asked, and this came of it."""
        self.report(Seen("approval", outcome, plugin=channel))

    async def ran(
        self, exec: ToolDispatchExecution, next: Callable[[], Awaitable[ToolExecutionResult]]
    ) -> ToolExecutionResult:
        """The body ran, with whatever wraps it."""
        start = self.clock()
        result = await next()
        took = f"after {(self.clock() - start) * 1000:.0f} ms"
        self.report(Seen("execute", "failure" if result.is_error else "success", took))
        return result

    async def accepted(self, next: Callable[[], Awaitable[PostToolDecision]]) -> PostToolDecision:
        """After the body: the result stands, is changed, or is withdrawn."""
        decision = await next()
        self.report(Seen("post-execute", _post_word(decision)))
        return decision

    def ended(self, exec: ToolExecution, result: ToolExecutionResult) -> None:
        """The result, as the caller gets it."""
        self.report(_seen_result(result))


def _post_word(decision: PostToolDecision) -> str:
    if isinstance(decision, Block):
        return "block"
    changed = isinstance(decision, Accept) and evolve(decision, additional_contexts=()) != Accept()
    return "accept, changed" if changed else "accept"


def _seen_result(result: ToolExecutionResult) -> Seen:
    if isinstance(result, ToolExecutionFailure):
        info = result.error.info
        what = (info.code or info.name) if info else "failure"
        return Seen("result", what, result.error.message, info.plugin if info else None)
    return Seen("result", "success", " ".join(str(block.get("text", "")) for block in result.content))
