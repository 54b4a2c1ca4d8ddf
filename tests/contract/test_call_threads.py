"""Contract 5.1: sync bodies run in worker threads, so many at once, and never wait for one another's threads."""

# ruff: noqa: A006  # bodies take what the hook interface calls exec

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
from pipeline_kit import Recorder, success

from dsh_runtime import AbortController, ToolDefinition, ToolExecutionInput, ToolOutput, open_host

PATIENCE = 20


def offer(rec: Recorder, name: str, body: Any) -> None:
    """Register a tool, whose body runs as it is."""
    rec.ctx.tools.register(ToolDefinition(name, "", {"type": "object"}, ToolOutput({}), body))


def nest(rec: Recorder, name: str, exec: Any, parent: bool = True, **arguments: Any) -> Any:
    """Call a tool out of a body's thread, and wait for its value."""
    call = ToolExecutionInput(
        f"{exec.call_id}/{name}", name, arguments, AbortController().signal, parent=exec.token if parent else None
    )
    return success(trio.from_thread.run(rec.ctx.tools.execute, call)).value


async def calls(rec: Recorder, name: str, count: int, **arguments: Any) -> list[Any]:
    """The values of so many calls at once."""
    values: list[Any] = []

    async def one() -> None:
        values.append(success(await rec.call(name, arguments or {})).value)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(one)
    return values


@pytest.mark.parametrize("parent", [True, False], ids=["with a parent", "without a parent"])
async def test_bodies_that_call_sync_tools_do_not_use_up_the_threads_of_those(parent: bool) -> None:
    """All threads hold a body that waits for another one: they get on all the same, at any depth."""
    async with open_host({"host": {"threads": 2}}) as host:
        rec = Recorder(host.ctx)
        together = threading.Barrier(2)

        def count_down(args: Any, exec: Any) -> str:
            if args["left"] == 3:
                together.wait(PATIENCE)  # both threads are taken
            return "down" if not args["left"] else nest(rec, "count_down", exec, parent, left=args["left"] - 1)

        offer(rec, "count_down", count_down)
        assert await calls(rec, "count_down", 2, left=3) == ["down", "down"]


async def test_sync_tools_behind_an_async_one_do_not_use_up_threads_either() -> None:
    """What a thread has run in the loop stands where the thread does."""
    async with open_host({"host": {"threads": 1}}) as host:
        rec = Recorder(host.ctx)

        def outer(args: Any, exec: Any) -> str:
            return str(nest(rec, "between", exec))

        async def between(args: Any, exec: Any) -> Any:
            call = ToolExecutionInput("inner", "inner", {}, exec.signal, parent=exec.token)
            return success(await rec.ctx.tools.execute(call)).value

        offer(rec, "outer", outer)
        offer(rec, "between", between)
        offer(rec, "inner", lambda args, exec: "in a thread")
        with trio.fail_after(PATIENCE):
            assert success(await rec.call("outer")).value == "in a thread"


async def test_no_more_sync_bodies_run_at_once_than_there_are_threads() -> None:
    """The others wait for their turn."""
    async with open_host({"host": {"threads": 3}}) as host:
        rec = Recorder(host.ctx)
        lock = threading.Lock()
        running, most = [0], [0]
        go = threading.Event()

        def body(args: Any, exec: Any) -> str:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
                if running[0] == 3:
                    go.set()
            go.wait(PATIENCE)
            with lock:
                running[0] -= 1
            return "done"

        offer(rec, "echo", body)
        assert await calls(rec, "echo", 9) == ["done"] * 9
        assert most == [3]
