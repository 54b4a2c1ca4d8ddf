"""A host for asyncio and for no event loop at all: calls, sessions, cancellation both ways, and the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from dsh_runtime import AbortController, ConfigError, HostError, ToolDefinition, ToolOutput
from dsh_runtime.embed import EmbeddedHost, HostClosedError

PATIENCE = 20
NO_LOG: dict[str, Any] = {"host": {"log": {"enabled": False}}}


class Trial:
    """Tools that echo, wait, fail and say who calls."""

    name = "trial"
    inject = ("tools",)

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.rested = threading.Event()
        self.codes: list[str | None] = []

    def apply(self, ctx: Any) -> None:
        ctx.on("tools/result", self.observe)
        for name in ("echo", "wait", "whoami"):
            ctx.tools.register(
                ToolDefinition(name, f"Does {name}.", {"type": "object"}, ToolOutput(schema={}), getattr(self, name))
            )

    def observe(self, result: Any) -> None:
        self.codes.append(code(result))

    async def echo(self, args: Any, exec: Any) -> Any:
        return args

    async def wait(self, args: Any, exec: Any) -> Any:
        self.begun.set()
        try:
            await trio.sleep_forever()
        finally:
            self.rested.set()

    async def whoami(self, args: Any, exec: Any) -> Any:
        return repr(exec.agent)


def code(result: Any) -> str | None:
    return result.error.info.code if result.is_error and result.error.info is not None else None


@pytest.fixture
def trial() -> Trial:
    return Trial()


@pytest.fixture
def host(trial: Trial) -> Iterator[EmbeddedHost]:
    with EmbeddedHost(NO_LOG, plugins=[trial]) as host:
        yield host


def test_a_call_without_an_event_loop(host: EmbeddedHost) -> None:
    assert host.call("echo", {"a": 1}).value == {"a": 1}
    assert {tool["name"] for tool in host.tools()} == {"echo", "wait", "whoami"}


def test_a_call_under_asyncio(trial: Trial) -> None:
    async def main() -> Any:
        async with EmbeddedHost(NO_LOG, plugins=[trial]) as host:
            results = await asyncio.gather(*(host.acall("echo", {"n": n}) for n in range(20)))
            return [result.value["n"] for result in results], len(await host.atools())

    assert asyncio.run(main()) == ([*range(20)], 3)


def test_many_threads_call_at_once(host: EmbeddedHost) -> None:
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(host.call("echo", {"n": n}).value["n"])) for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(found) == [*range(20)]


def test_every_session_is_an_agent_of_its_own(host: EmbeddedHost) -> None:
    one, two = host.session("one"), host.session("two")
    agents = {host.call("whoami", session=session).value for session in (one, two, None)}
    assert len(agents) == 3


def test_a_session_can_be_confined(host: EmbeddedHost) -> None:
    session = host.session("narrow")
    session.configure(lambda ctx: ctx.tools.restrict(allow=["echo"]))
    assert [tool["name"] for tool in host.tools(session)] == ["echo"]
    assert code(host.call("whoami", session=session)) == "UNKNOWN_TOOL"
    assert len(host.tools()) == 3


def test_a_session_that_is_closed_calls_nothing(host: EmbeddedHost) -> None:
    session = host.session()
    session.close()
    assert code(host.call("echo", session=session)) == "SCOPE_CLOSED"


def test_sessions_are_on_record(trial: Trial, tmp_path: Path) -> None:
    config = {"host": {"log": {"path": str(tmp_path / "log.db")}}}
    with EmbeddedHost(config, plugins=[trial]) as host:
        session = host.session("mine")
        host.call("echo", {}, session=session, call_id="c-1")
        session.close()
    assert (tmp_path / "log.db").stat().st_size > 0


# Giving up


def test_a_signal_aborts_a_call(host: EmbeddedHost, trial: Trial) -> None:
    controller = AbortController()
    timer = threading.Thread(target=lambda: (trial.begun.wait(PATIENCE), controller.abort("enough")))
    timer.start()
    assert code(host.call("wait", signal=controller.signal)) == "ABORTED"
    timer.join()


def test_cancelling_the_task_aborts_the_call_and_waits_for_it(trial: Trial) -> None:
    async def main() -> None:
        async with EmbeddedHost(NO_LOG, plugins=[trial]) as host:
            task = asyncio.create_task(host.acall("wait"))
            await asyncio.to_thread(trial.begun.wait, PATIENCE)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert trial.rested.is_set()
            assert trial.codes == ["ABORTED"]

    asyncio.run(main())


def test_a_deadline_of_asyncio_aborts_the_call(trial: Trial) -> None:
    async def main() -> None:
        async with EmbeddedHost(NO_LOG, plugins=[trial]) as host:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(host.acall("wait"), 0.1)

    asyncio.run(main())
    assert trial.codes == ["ABORTED"]


def test_a_host_that_closes_aborts_its_calls(trial: Trial) -> None:
    results: list[Any] = []
    with EmbeddedHost(NO_LOG, plugins=[trial]) as host:
        caller = threading.Thread(target=lambda: results.append(host.call("wait")))
        caller.start()
        trial.begun.wait(PATIENCE)
    caller.join(PATIENCE)
    assert code(results[0]) == "ABORTED"


# Opening and closing


def test_a_host_that_cannot_start_says_why() -> None:
    class Broken:
        name = "broken"

        def apply(self, ctx: Any) -> None:
            raise LookupError("no such thing")

    with pytest.raises(HostError, match="no such thing"), EmbeddedHost(NO_LOG, plugins=[Broken()]):
        pass
    with pytest.raises(ConfigError), EmbeddedHost({"no": "such"}):
        pass

    async def main() -> None:
        async with EmbeddedHost(NO_LOG, plugins=[Broken()]):
            pass

    with pytest.raises(HostError, match="no such thing"):
        asyncio.run(main())


def test_a_host_that_is_not_open_is_not_called(trial: Trial) -> None:
    host = EmbeddedHost(NO_LOG, plugins=[trial])
    with pytest.raises(HostClosedError):
        host.call("echo")
    with host:
        pass
    with pytest.raises(HostClosedError):
        host.call("echo")
    with pytest.raises(RuntimeError, match="opened once"):
        host.__enter__()


def test_no_thread_is_left(trial: Trial) -> None:
    before = set(threading.enumerate())
    with EmbeddedHost(NO_LOG, plugins=[trial]) as host:
        host.call("echo")
    assert {thread for thread in set(threading.enumerate()) - before if "host" in thread.name} == set()
