"""Writes one JSON line about every call, and lets no call run whose line could not be written.

Layering, lowest first: ``_config``, ``_entry``; ``_line``, ``_spool``; ``_file``; ``_writer``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio
from dsh_hookspecs import Context, Deny, PreToolDecision, ToolExecution, ToolExecutionResult

from dsh_plugin_audit_jsonl._config import Config
from dsh_plugin_audit_jsonl._file import AuditFile
from dsh_plugin_audit_jsonl._line import Lines
from dsh_plugin_audit_jsonl._spool import Spool
from dsh_plugin_audit_jsonl._writer import Writer

__all__ = ["Config", "apply", "inject", "name"]

name: Final = "audit-jsonl"
inject: Final = {"tools": True, "redact": False}


async def apply(ctx: Context, config: Config) -> None:
    """Open the file; from then on refuse calls without a place for their record, and record every call that ends.

    A call is refused twice: before any other policy is heard, so that nobody is asked in vain, and by a guard, which
    no policy can overrule.
    """
    spool = Spool(config.capacity)
    file = AuditFile(config.path, max_bytes=config.max_bytes, keep=config.keep, fsync=config.fsync)
    lines = Lines(config.arguments, config.max_argument_bytes, ctx.get("redact"))
    writer = Writer(spool, file, lines, ctx.logger)

    def guard(exec: ToolExecution) -> str | None:
        problem = spool.refusal(exec, trio.current_time())
        return None if problem is None else f"No call may run unaudited: {problem}. Try again later."

    def admit(
        exec: ToolExecution, next: Callable[[], Awaitable[PreToolDecision]]
    ) -> PreToolDecision | Awaitable[PreToolDecision]:
        refusal = guard(exec)
        return next() if refusal is None else Deny(refusal)

    def record(exec: ToolExecution, result: ToolExecutionResult) -> None:
        spool.add(exec, result, trio.current_time())
        writer.wake()

    ctx.effect(lambda: writer.close)
    await writer.open()
    ctx.start_soon(writer.run)
    ctx.on("tools/pre-execute", admit, prepend=True)
    ctx.tools.guard(guard)
    ctx.on("tools/result", record)
