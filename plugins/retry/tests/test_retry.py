"""Retries in a host, on virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from dsh_hookspecs import (
    AbortController,
    AbortSignal,
    Allow,
    ContextMessage,
    HarnessError,
    ToolExecution,
    ToolExecutionResult,
)
from trio.testing import MockClock

from dsh_runtime import HostError, ToolExecutionInput, define_tool, open_host

Next = Callable[[], Awaitable[ToolExecutionResult]]


class Flaky:
    """A body that fails in given ways, one after the other, and then succeeds; it notes when it began."""

    def __init__(self, *failures: Exception | None, seconds: float = 0) -> None:
        self.failures = list(failures)
        self.seconds = seconds
        self.began: list[float] = []

    async def __call__(self, args: Any, exec: Any) -> str:
        self.began.append(trio.current_time())
        await trio.sleep(self.seconds)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return f"done at attempt {len(self.began)}"


class Host:
    """A host with the retry plugin; its tools are made from their bodies."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx

    def add(self, execute: Any, *, name: str = "work", idempotent: bool = True, timeout: float | None = None) -> None:
        async def body(args: Any, exec: Any) -> Any:
            return await execute(args, exec)

        tool: Any = define_tool(
            name=name,
            description=name,
            parameters={},
            output={"type": "string"},
            execute=body,
            idempotent=idempotent,
            timeout=timeout,
        )
        self.ctx.tools.register(tool)

    async def call(self, name: str = "work", signal: AbortSignal | None = None, arguments: Any = None) -> Any:
        signal = signal or AbortController().signal
        return await self.ctx.tools.execute(ToolExecutionInput("c1", name, arguments or {}, signal))


@asynccontextmanager
async def retrying(*more: Any, **config: Any) -> AsyncIterator[Host]:
    row = {"id": "again", "use": "retry", "config": {"jitter": 0.0, "delay": 1, **config}}
    async with open_host({"plugin": [row, *more]}) as host:
        yield Host(host.ctx)


TIMEOUT = {"id": "timeout", "use": "timeout"}


def code(result: Any) -> str | None:
    assert result.is_error
    return result.error.info.code if result.error.info is not None else None


@pytest.mark.trio
async def test_an_idempotent_tool_that_fails_is_tried_again_until_it_succeeds(autojump_clock: MockClock) -> None:
    flaky = Flaky(OSError("reset"), OSError("reset"))
    async with retrying() as host:
        host.add(flaky)
        result = await host.call()
    assert result.value == "done at attempt 3"
    assert flaky.began == pytest.approx([0, 1, 3])


@pytest.mark.trio
async def test_a_tool_that_does_not_declare_itself_idempotent_runs_once(autojump_clock: MockClock) -> None:
    flaky = Flaky(OSError("reset"))
    async with retrying() as host:
        host.add(flaky, idempotent=False)
        result = await host.call()
    assert "reset" in result.error.message
    assert len(flaky.began) == 1


@pytest.mark.trio
async def test_a_success_is_not_tried_again(autojump_clock: MockClock) -> None:
    flaky = Flaky()
    async with retrying() as host:
        host.add(flaky)
        assert not (await host.call()).is_error
    assert len(flaky.began) == 1


@pytest.mark.trio
async def test_the_result_of_the_last_attempt_is_returned(autojump_clock: MockClock) -> None:
    flaky = Flaky(OSError("first"), OSError("second"), OSError("third"), OSError("fourth"))
    async with retrying(attempts=3) as host:
        host.add(flaky)
        result = await host.call()
    assert result.error.message.endswith("third")
    assert len(flaky.began) == 3


@pytest.mark.trio
async def test_contexts_of_the_last_attempt_alone_are_kept(autojump_clock: MockClock) -> None:
    flaky = Flaky(OSError("reset"))

    async def execute(args: Any, exec: Any) -> str:
        text = f"attempt {len(flaky.began) + 1}"
        exec.defer_context(ContextMessage([{"type": "text", "text": text}], "work"))
        return await flaky(args, exec)

    async with retrying() as host:
        host.add(execute)
        result = await host.call()
    assert [message.content[0]["text"] for message in result.additional_contexts] == ["attempt 2"]


@pytest.mark.trio
async def test_no_attempt_begins_after_max_time(autojump_clock: MockClock) -> None:
    flaky = Flaky(*[OSError("reset")] * 10, seconds=2)
    async with retrying(attempts=10, max_time=10, factor=1) as host:
        host.add(flaky)
        assert (await host.call()).is_error
        assert flaky.began == pytest.approx([0, 3, 6, 9])
        assert trio.current_time() == pytest.approx(11)


@pytest.mark.trio
async def test_waits_grow_up_to_their_cap(autojump_clock: MockClock) -> None:
    flaky = Flaky(*[OSError("reset")] * 5)
    async with retrying(attempts=6, factor=3, max_delay=5) as host:
        host.add(flaky)
        await host.call()
    assert flaky.began == pytest.approx([0, 1, 4, 9, 14, 19])


@pytest.mark.trio
async def test_a_seed_makes_the_jittered_waits_the_same_in_every_run(autojump_clock: MockClock) -> None:
    runs = []
    for seed in (7, 7, 8):
        flaky = Flaky(*[OSError("reset")] * 3)
        async with retrying(attempts=4, jitter=1.0, seed=seed) as host:
            host.add(flaky)
            start = trio.current_time()
            await host.call()
        runs.append([began - start for began in flaky.began])
    assert runs[0] == pytest.approx(runs[1])
    assert runs[0] != pytest.approx(runs[2])
    assert all(wait < cap for wait, cap in zip(runs[0][1:], [1, 3, 7], strict=True))


@pytest.mark.trio
@pytest.mark.parametrize(
    ("failure", "attempts"),
    [(HarnessError("slow", code="TOOL_TIMEOUT"), 2), (HarnessError("x", code="BUSY"), 1), (ValueError("x"), 2)],
)
async def test_by_default_failures_without_a_code_and_timeouts_are_retried(
    autojump_clock: MockClock, failure: Exception, attempts: int
) -> None:
    flaky = Flaky(failure)
    async with retrying() as host:
        host.add(flaky)
        await host.call()
    assert len(flaky.began) == attempts


@pytest.mark.trio
async def test_codes_in_the_config_say_which_failures_are_retried(autojump_clock: MockClock) -> None:
    busy, plain = Flaky(HarnessError("later", code="BUSY")), Flaky(OSError("reset"))
    async with retrying(codes=["BUSY"], without_code=False) as host:
        host.add(busy, name="busy")
        host.add(plain, name="plain")
        assert not (await host.call("busy")).is_error
        assert (await host.call("plain")).is_error


@pytest.mark.trio
async def test_output_that_breaks_the_tools_own_schema_is_not_retried(autojump_clock: MockClock) -> None:
    began: list[float] = []

    async def execute(args: Any, exec: Any) -> Any:
        began.append(trio.current_time())
        return 5

    async with retrying() as host:
        host.add(execute)
        assert code(await host.call()) == "INVALID_TOOL_OUTPUT"
    assert len(began) == 1


def no_work(exec: ToolExecution) -> str | None:
    return "no" if exec.name == "work" else None


@pytest.mark.trio
async def test_a_denial_or_a_refused_argument_is_not_retried(autojump_clock: MockClock) -> None:
    flaky = Flaky()
    async with retrying() as host:
        host.add(flaky)
        host.ctx.tools.guard(no_work)
        assert code(await host.call()) == "GUARDED"
        assert code(await host.call("nothing")) == "UNKNOWN_TOOL"
        assert trio.current_time() == 0
    assert flaky.began == []


@pytest.mark.trio
async def test_a_failing_wrapper_behind_fails_the_call_without_another_attempt(autojump_clock: MockClock) -> None:
    flaky = Flaky()

    async def broken(exec: Any, next: Next) -> ToolExecutionResult:
        await next()
        raise RuntimeError("bug")

    async with retrying() as host:
        host.ctx.on("tools/execute", broken)
        host.add(flaky)
        assert code(await host.call()) == "LISTENER_FAILED"
    assert len(flaky.began) == 1


@pytest.mark.trio
async def test_each_attempt_runs_the_wrappers_behind_again(autojump_clock: MockClock) -> None:
    seen: list[str] = []
    flaky = Flaky(OSError("reset"))

    async def behind(exec: Any, next: Next) -> ToolExecutionResult:
        seen.append("in")
        result = await next()
        seen.append("failed" if result.is_error else "done")
        return result

    async with retrying() as host:
        host.ctx.on("tools/execute", behind)
        host.add(flaky)
        await host.call()
    assert seen == ["in", "failed", "in", "done"]


@pytest.mark.trio
async def test_policy_is_asked_once_for_all_attempts(autojump_clock: MockClock) -> None:
    asked: list[str] = []

    def policy(exec: ToolExecution) -> Allow:
        asked.append(exec.call_id)
        return Allow()

    async with retrying() as host:
        host.ctx.on("tools/pre-execute", policy)
        host.add(Flaky(OSError("reset")))
        await host.call()
    assert asked == ["c1"]


@pytest.mark.trio
async def test_a_timeout_behind_gives_each_attempt_its_own_deadline(autojump_clock: MockClock) -> None:
    flaky = Flaky(seconds=60)
    async with retrying(TIMEOUT, attempts=2) as host:
        host.add(flaky, timeout=5)
        assert code(await host.call()) == "TOOL_TIMEOUT"
        assert flaky.began == pytest.approx([0, 6])
        assert trio.current_time() == pytest.approx(11)


@pytest.mark.trio
async def test_a_timeout_in_front_covers_attempts_and_waits(autojump_clock: MockClock) -> None:
    flaky = Flaky(*[OSError("reset")] * 9)
    again = {"id": "again", "use": "retry", "config": {"jitter": 0.0, "delay": 3, "attempts": 9}}
    async with open_host({"plugin": [TIMEOUT, again]}) as runtime:
        host = Host(runtime.ctx)
        host.add(flaky, timeout=5)
        assert code(await host.call()) == "TOOL_TIMEOUT"
        assert trio.current_time() == pytest.approx(5)
    assert flaky.began == pytest.approx([0, 3])


async def abort_after(seconds: float, controller: AbortController) -> None:
    await trio.sleep(seconds)
    controller.abort("the person pressed stop")


@pytest.mark.trio
async def test_a_callers_abort_ends_the_wait_at_once_and_nothing_is_retried(autojump_clock: MockClock) -> None:
    flaky, controller = Flaky(OSError("reset")), AbortController()
    async with retrying(delay=20) as host, trio.open_nursery() as nursery:
        host.add(flaky)
        nursery.start_soon(abort_after, 1, controller)
        result = await host.call(signal=controller.signal)
        assert code(result) == "ABORTED"
        assert "attempt 1 failed" in result.error.message
        assert trio.current_time() == pytest.approx(1)
    assert len(flaky.began) == 1


@pytest.mark.trio
async def test_a_failure_with_a_code_stays_when_its_wait_is_aborted(autojump_clock: MockClock) -> None:
    controller = AbortController()
    async with retrying(codes=["BUSY"], delay=20) as host, trio.open_nursery() as nursery:
        host.add(Flaky(HarnessError("later", code="BUSY")))
        nursery.start_soon(abort_after, 1, controller)
        assert code(await host.call(signal=controller.signal)) == "BUSY"


@pytest.mark.trio
async def test_an_attempt_that_is_aborted_is_the_last(autojump_clock: MockClock) -> None:
    flaky, controller = Flaky(seconds=60), AbortController()
    async with retrying() as host, trio.open_nursery() as nursery:
        host.add(flaky)
        nursery.start_soon(abort_after, 1, controller)
        assert code(await host.call(signal=controller.signal)) == "ABORTED"
    assert len(flaky.began) == 1


@pytest.mark.trio
async def test_a_failure_that_comes_with_an_abort_is_not_retried(autojump_clock: MockClock) -> None:
    began: list[float] = []
    controller = AbortController()

    async def execute(args: Any, exec: Any) -> str:
        began.append(trio.current_time())
        controller.abort()
        raise HarnessError("slow", code="TOOL_TIMEOUT")

    async with retrying() as host:
        host.add(execute)
        assert code(await host.call(signal=controller.signal)) == "TOOL_TIMEOUT"
    assert len(began) == 1


@pytest.mark.trio
async def test_a_caller_that_is_cancelled_during_a_wait_is_cancelled(autojump_clock: MockClock) -> None:
    flaky = Flaky(OSError("reset"))
    async with retrying(delay=20) as host:
        host.add(flaky)
        with trio.move_on_after(1) as scope:
            await host.call()
        assert scope.cancelled_caught
        assert trio.current_time() == pytest.approx(1)
    assert len(flaky.began) == 1


@pytest.mark.trio
async def test_the_tools_in_the_config_alone_are_retried(autojump_clock: MockClock) -> None:
    web, other = Flaky(OSError("reset")), Flaky(OSError("reset"))
    async with retrying(tools=["web_*"]) as host:
        host.add(web, name="web_fetch")
        host.add(other, name="other")
        assert not (await host.call("web_fetch")).is_error
        assert (await host.call("other")).is_error


@pytest.mark.trio
@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"attempts": 0}, "attempts"),
        ({"max_time": 0}, "max_time"),
        ({"jitter": 1.5}, "jitter"),
        ({"factor": 0.5}, "factor"),
        ({"codes": ["DENIED", "BUSY", "ABORTED"]}, "ABORTED, DENIED are never retried; remove it"),
        ({"tools": []}, "write ['*']"),
        ({"atempts": 2}, "atempts"),
    ],
)
async def test_a_config_with_a_mistake_stops_the_start_and_is_named(config: dict[str, Any], named: str) -> None:
    with pytest.raises(HostError) as caught:
        async with retrying(**config):
            pass  # pragma: no cover
    assert named in str(caught.value)
