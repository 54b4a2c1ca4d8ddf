"""A plugin file with tools to try, and an observer. What happens goes into a log, one JSON object for each event."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import trio
from attrs import frozen

from dsh_runtime import ToolDefinition, ToolOutput

name = "trial"
inject = ("tools",)
ANY_OBJECT: dict[str, Any] = {"type": "object"}
#: Of another dialect, in an unusual order, and with nulls.
ODD: dict[str, Any] = {
    "title": None,
    "$schema": "http://json-schema.org/draft-04/schema#",
    "required": [],
    "properties": {"z": {"exclusiveMinimum": True, "minimum": 1.0}, "a": {"default": None}},
    "type": "object",
}
LOG = Path(os.devnull)


@frozen
class Config:
    """Where the log is."""

    log: str


def log(event: str, **more: Any) -> None:
    with LOG.open("a") as file:
        file.write(json.dumps({"event": event, **more}) + "\n")


async def echo(args: Any, exec: Any) -> Any:
    return {"text": args["text"]}


async def fail(args: Any, exec: Any) -> Any:
    raise ValueError("boom")


async def numbers(args: Any, exec: Any) -> Any:
    return [1, 2, 3]


async def grow(args: Any, exec: Any) -> Any:
    return {"text": "x" * args["size"]}


async def count(args: Any, exec: Any) -> Any:
    for done in (1, 2, 3):
        exec.progress(done, 3, f"step {done}")
    return {"counted": 3}


async def wait(args: Any, exec: Any) -> Any:
    """Say that the body runs, and wait until it is stopped."""
    exec.progress(1, None, "begun")
    try:
        await trio.sleep_forever()
    finally:
        log("stopped", call_id=exec.call_id, aborted=exec.signal.aborted)


def chatter(args: Any, exec: Any) -> Any:
    """Write to stdout in every way there is."""
    print("from print")
    sys.stdout.flush()
    sys.__stdout__.write("from sys.__stdout__, not flushed")  # type: ignore[union-attr]
    os.write(1, b"from os.write\n")
    subprocess.run(["echo", "from a subprocess"], check=True)
    ctypes.CDLL(None).puts(b"from C, not flushed")
    return {"stdin": sys.stdin.read(), "fds": sorted(_inherited_fds())}


def _inherited_fds() -> list[str]:
    listing = subprocess.run(["ls", "/proc/self/fd"], check=True, capture_output=True, text=True)
    return listing.stdout.split()


def apply(ctx: Any, config: Config) -> Any:
    """Register the tools and observe; the undo logs how the process ends."""
    global LOG
    LOG = Path(config.log)

    def offer(body: Any, output: Any, **properties: Any) -> None:
        parameters = {"type": "object", "properties": properties}
        ctx.tools.register(
            ToolDefinition(body.__name__, f"Tries {body.__name__}", parameters, ToolOutput(output), body)
        )

    def learn(args: Any, exec: Any) -> Any:
        """Register one more tool."""
        offer(late, ANY_OBJECT)
        return {}

    async def late(args: Any, exec: Any) -> Any:
        return {}

    ctx.tools.register(ToolDefinition("odd", "Has an odd schema", ODD, ToolOutput(ANY_OBJECT), echo))
    offer(echo, ANY_OBJECT, text={"type": "string", "default": None})
    offer(fail, ANY_OBJECT)
    offer(numbers, {"type": "array", "items": {"type": "integer"}})
    offer(grow, ANY_OBJECT, size={"type": "integer"})
    offer(count, ANY_OBJECT)
    offer(wait, ANY_OBJECT)
    offer(chatter, ANY_OBJECT)
    offer(learn, ANY_OBJECT)
    ctx.on("tools/result", observe)
    return lambda: log("ended", threads=[thread.name for thread in threading.enumerate() if not thread.daemon])


def observe(exec: Any, result: Any) -> None:
    code = result.error.info.code if result.is_error and result.error.info else None
    log("result", call_id=exec.call_id, name=exec.name, agent=repr(exec.agent), error=result.is_error, code=code)
