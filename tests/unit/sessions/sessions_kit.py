"""What the tests of the session log share: calls, results, redactors, and looking into the file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen
from dsh_hookspecs import (
    AbortController,
    ExecutionToken,
    ToolErrorInfo,
    ToolExecutionFailure,
    ToolExecutionSuccess,
    ToolFailure,
)

from dsh_runtime.services.sessions import Sessions, SessionsConfig
from dsh_runtime.tools.execution import make_execution


async def mount(ctx: Any, path: Path, *, clock: Callable[[], int] | None = None, **config: Any) -> Any:
    """Mount the service on a root context and give it as that context sees it."""
    settings = SessionsConfig(path=str(path), **config)
    fiber = ctx.plugin(Sessions(settings) if clock is None else Sessions(settings, clock=clock))
    await fiber.wait()
    return ctx.get("sessions")


def call(
    call_id: str = "c1",
    name: str = "echo",
    arguments: Any = None,
    *,
    agent: Any = None,
    parent: Any = None,
    root: str | None = None,
    dry_run: bool = False,
) -> Any:
    """An execution as the pipeline makes it."""
    signal = AbortController().signal
    arguments = {"text": "hello"} if arguments is None else arguments
    return make_execution(call_id, name, arguments, signal, agent, parent, root, ExecutionToken(), dry_run)


def success(text: str = "hello", *, value: Any = "the canonical value", meta: Any = None) -> Any:
    """A success with one text block."""
    return ToolExecutionSuccess(value=value, content=[{"type": "text", "text": text}], meta=meta)


def failure(message: str = "no", code: str | None = "DENIED", plugin: str | None = "gate") -> Any:
    """A failure as the pipeline makes it."""
    return ToolExecutionFailure(ToolFailure(message, ToolErrorInfo("ToolDenied", code, plugin)))


async def whole_call(sessions: Any, call_id: str = "c1", result: Any = None, **members: Any) -> Any:
    """One call from entry to result."""
    run = call(call_id, **members)
    await sessions.called(run)
    await sessions.finished(run, result if result is not None else success(), None)
    return run


@frozen
class Record:
    """One row of the table of events."""

    session: int
    seq: int
    time: int
    type: str
    call: int | None
    outcome: str | None
    code: str | None
    payload: dict[str, Any]


def records(path: Path, kind: str | None = None) -> list[Record]:
    """The rows of the log in order of commit, of one type or of all but ``plugin/state``."""
    db = sqlite3.connect(path)
    try:
        rows = db.execute("SELECT session, seq, time, type, call, outcome, code, payload FROM events ORDER BY id")
        found = [Record(*row[:-1], json.loads(row[-1])) for row in rows]
    finally:
        db.close()
    return [each for each in found if (each.type == kind if kind else each.type != "plugin/state")]


def query(path: Path, sql: str) -> list[Any]:
    """What a statement gives on the file."""
    db = sqlite3.connect(path)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


class Masker:
    """A redactor that replaces one word everywhere, keys included."""

    name = "redact"

    def __init__(self, secret: str = "hunter2") -> None:
        self.secret = secret

    def apply(self, ctx: Any) -> None:
        ctx.provide("redact", self)

    def text(self, text: str) -> str:
        return text.replace(self.secret, "***")

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(child) for key, child in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(child) for child in value]
        return value
