"""A host that asks at the terminal. It is told what to do on stdin and says on stdout what came of it, as JSON lines.

``call``: make a call under that id, with ``arguments``. ``abort``: abort it. ``answer``: what a second channel says to
all questions. ``end``: leave.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

import dsh_plugin_approval_terminal
import trio
import trio.testing
from attrs import define, field
from dsh_hookspecs import DiffCall, FileDiff

from dsh_runtime import AbortController, Ask, Host, ToolDefinition, ToolExecutionInput, ToolOutput, open_host

Settings = dict[str, Any]


class Redact:
    """Masks one word."""

    def text(self, text: str) -> str:
        return text.replace("hunter2", "****")

    def value(self, value: Any) -> Any:
        return json.loads(self.text(json.dumps(value)))


def say(**words: Any) -> None:
    os.write(1, json.dumps(words).encode() + b"\n")


@define
class Process:
    """The host, its calls, and a second channel."""

    host: Host
    nursery: trio.Nursery
    calls: dict[str, AbortController] = field(factory=dict)
    answer: str = ""
    answered: trio.Event = field(factory=trio.Event)

    async def call(self, name: str, arguments: Any) -> None:
        signal = self.calls[name].signal
        call = ToolExecutionInput(name, "echo", arguments, signal, agent=self.host.ctx.scope().key)
        result = await self.host.ctx.tools.execute(call)
        say(call=name, code=result.error.info.code if result.is_error else None)

    async def second_channel(self) -> str:
        await self.answered.wait()
        return self.answer

    def do(self, command: dict[str, Any]) -> None:
        if "call" in command:
            self.calls[command["call"]] = AbortController()
            self.nursery.start_soon(self.call, command["call"], command.get("arguments", {}))
        elif "abort" in command:
            self.calls[command["abort"]].abort("told to")
        elif "answer" in command:
            self.answer = command["answer"]
            self.answered.set()
        elif "end" in command:
            say(threads=threading.active_count(), fds=sorted(os.listdir("/proc/self/fd")))
            self.nursery.cancel_scope.cancel()


async def main(settings: Settings) -> None:
    other = settings.pop("other", None)
    redact = settings.pop("redact", False)
    async with open_host({"host": settings}) as host, trio.open_nursery() as nursery:
        process = Process(host, nursery)
        if redact:
            host.ctx.provide("redact", Redact())
        if other:
            host.ctx.plugin(dsh_plugin_approval_terminal)
            host.ctx.plugin(Second(process))
        else:
            await host.ctx.plugin(dsh_plugin_approval_terminal).wait()
        await trio.testing.wait_all_tasks_blocked()
        host.ctx.tools.register(
            ToolDefinition("echo", "", {"type": "object"}, ToolOutput({}), echo, present_call=present)
        )
        host.ctx.on("tools/pre-execute", lambda: Ask("sure?"))
        nursery.start_soon(note_interrupts)
        say(ready=sorted(os.listdir("/proc/self/fd")))
        async for line in lines():
            process.do(json.loads(line))
            await trio.testing.wait_all_tasks_blocked()  # so that one question is asked after the other
        nursery.cancel_scope.cancel()


class Second:
    """A channel behind the terminal."""

    name = "second"

    def __init__(self, process: Process) -> None:
        self.process = process

    def apply(self, ctx: Any) -> None:
        ctx.on("approval/request", lambda: self.process.second_channel())


def present(args: Any) -> Any:
    """A card of the tool's own, where there is something to show."""
    return DiffCall("Edit notes", [FileDiff("notes.txt", "old\n", f"{args['new']}\n")]) if "new" in args else None


async def echo(args: Any, exec: Any) -> Any:
    say(ran=exec.call_id)
    return args


async def note_interrupts() -> None:
    with trio.open_signal_receiver(signal.SIGINT) as interrupts:
        async for _ in interrupts:
            say(interrupted=True)


async def lines() -> Any:
    unread = b""
    async for chunk in trio.lowlevel.FdStream(os.dup(0)):
        *complete, unread = (unread + chunk).split(b"\n")
        for line in complete:
            yield line


def go_to_background() -> None:
    """Go on in a process that is not in the foreground of its terminal."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
    os.setpgid(0, 0)


if __name__ == "__main__":
    settings: Settings = json.loads(sys.argv[1])
    if settings.pop("background", False):
        go_to_background()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    trio.run(main, settings)
