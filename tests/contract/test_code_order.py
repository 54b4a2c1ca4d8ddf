"""Contract 7.3: sub-calls obey the rules of a batch: what overlaps, what waits, in which order things happen."""

# ruff: noqa: A001, A006 - listeners and bodies take their arguments by these names

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from code_kit import programs
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_kit import Recorder

from dsh_runtime import AbortController


class Pool:
    """Counts the bodies that run, and lets each end when it is told to."""

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.most = 0
        self.order: list[int] = []
        self.go: dict[int, trio.Event] = {}

    async def body(self, args: Any, exec: Any) -> str:
        number = args["n"]
        self.order.append(number)
        self.running.add(number)
        self.most = max(self.most, len(self.running))
        try:
            await self.go.setdefault(number, trio.Event()).wait()
        finally:
            self.running.discard(number)
        return f"ran {number}"

    def release(self, *numbers: int) -> None:
        for number in numbers:
            self.go.setdefault(number, trio.Event()).set()


def safe(args: Any) -> bool:
    return True


async def test_parallel_safe_sub_calls_overlap_up_to_the_limit(autojump_clock: trio.testing.MockClock) -> None:
    pool = Pool()
    async with programs({"max_parallel": 3}) as run:
        Recorder(run.ctx).tool("work", pool.body, is_concurrency_safe=safe)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.result, "await gather(*(tools.work({'n': n}) for n in range(5)))")
            await trio.testing.wait_all_tasks_blocked()
            assert pool.running == {0, 1, 2}
            pool.release(1)
            await trio.testing.wait_all_tasks_blocked()
            assert pool.running == {0, 2, 3}  # A place is free as soon as a body is at rest.
            pool.release(0, 2, 3, 4)
    assert pool.order == [0, 1, 2, 3, 4]


async def test_an_exclusive_sub_call_waits_for_all_in_front_and_holds_up_all_behind() -> None:
    pool = Pool()
    async with programs() as run:
        Recorder(run.ctx).tool("work", pool.body, is_concurrency_safe=lambda args: args["n"] != 2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.result, "await gather(*(tools.work({'n': n}) for n in range(5)))")
            await trio.testing.wait_all_tasks_blocked()
            assert pool.running == {0, 1}
            pool.release(0)
            await trio.testing.wait_all_tasks_blocked()
            assert pool.running == {1}
            pool.release(1)
            await trio.testing.wait_all_tasks_blocked()
            assert pool.running == {2}
            pool.release(2)
            await trio.testing.wait_all_tasks_blocked()
            assert pool.running == {3, 4}
            pool.release(3, 4)


async def test_sub_calls_that_nobody_declares_safe_run_one_at_a_time() -> None:
    pool = Pool()
    pool.release(*range(4))
    async with programs() as run:
        Recorder(run.ctx).tool("work", pool.body)
        await run.result("await gather(*(tools.work({'n': n}) for n in range(4)))")
    assert pool.most == 1
    assert pool.order == [0, 1, 2, 3]


async def test_policy_review_and_results_keep_the_order_of_arrival() -> None:
    """Though the bodies end the other way round."""
    pool = Pool()
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("work", pool.body, is_concurrency_safe=safe, finalized=False)
        seen: list[str] = []

        async def before(exec: Any, next: Any) -> Any:
            if exec.name == "work":
                await trio.lowlevel.checkpoint()
                seen.append(f"pre {exec.arguments['n']}")
            return await next()

        def after(exec: Any, result: Any, next: Any) -> Any:
            if exec.name == "work":
                seen.append(f"post {exec.arguments['n']}")
            return next()

        run.ctx.on("tools/pre-execute", before)
        run.ctx.on("tools/post-execute", after)
        rec.observe("R")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.result, "await gather(*(tools.work({'n': n}) for n in range(3)))")
            for number in (2, 1, 0):
                await trio.testing.wait_all_tasks_blocked()
                pool.release(number)
    assert seen == ["pre 0", "pre 1", "pre 2", "post 0", "post 1", "post 2"]
    assert [exec.arguments.get("n") for exec in rec.executions[:3]] == [0, 1, 2]


async def test_what_is_safe_is_read_again_right_before_each_start() -> None:
    pool, is_safe = Pool(), [True]
    async with programs({"max_parallel": 1}) as run:
        Recorder(run.ctx).tool("work", pool.body, is_concurrency_safe=lambda args: is_safe[0])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.result, "await gather(*(tools.work({'n': n}) for n in range(2)))")
            await trio.testing.wait_all_tasks_blocked()
            is_safe[0] = False
            pool.release(0)
            await trio.testing.wait_all_tasks_blocked()
            assert pool.running == {1}
            pool.release(1)
    assert pool.most == 1


async def test_two_programs_have_lines_of_their_own() -> None:
    """One line a program: an exclusive sub-call of one does not hold up the other."""
    pool = Pool()
    async with programs() as run:
        Recorder(run.ctx).tool("work", pool.body)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.result, "await tools.work({'n': 1})")
            nursery.start_soon(run.result, "await tools.work({'n': 2})")
            await trio.testing.wait_all_tasks_blocked()
            assert pool.running == {1, 2}
            pool.release(1, 2)


async def test_a_sub_call_that_is_given_up_before_its_turn_holds_nobody_up() -> None:
    pool = Pool()
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("work", pool.body)
        rec.observe("R")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                run.result,
                """
                start(tools.work({"n": 0}))
                with trio.CancelScope() as scope:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(tools.work, {"n": 1})
                        await trio.testing.wait_all_tasks_blocked()
                        scope.cancel()
                return await tools.work({"n": 2})
                """,
            )
            await trio.testing.wait_all_tasks_blocked()
            pool.release(0, 2)
    assert pool.order == [0, 2]


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(["parallel", "exclusive", "failing"]), min_size=1, max_size=12),
    pool_size=st.integers(1, 4),
    ends=st.randoms(use_true_random=False),
    stops_after=st.none() | st.integers(0, 6),
)
def test_whatever_a_program_starts_the_rules_hold(
    kinds: list[str], pool_size: int, ends: Any, stops_after: int | None
) -> None:
    """Never more than the pool, an exclusive one alone, starts and results in order, and everything at rest."""

    async def scenario() -> None:
        running: dict[int, str] = {}
        started: list[int] = []
        results: list[int] = []
        broken: list[dict[int, str]] = []
        controller = AbortController()

        async def body(args: Any, exec: Any) -> str:
            number, kind = args["n"], args["kind"]
            running[number] = kind
            started.append(number)
            exclusive = "exclusive" in running.values()
            if len(running) > pool_size or (exclusive and len(running) > 1):
                broken.append(dict(running))  # An error raised here would be the tool's own.
            try:
                await trio.sleep(ends.random())
                if stops_after is not None and len(started) > stops_after:
                    controller.abort("enough")
                if kind == "failing":
                    raise ValueError("as it should")
                return "ok"
            finally:
                del running[number]

        async with programs({"max_parallel": pool_size}) as run:
            rec = Recorder(run.ctx)
            rec.tool("work", body, is_concurrency_safe=lambda args: args["kind"] != "exclusive", finalized=False)
            rec.observe("R", lambda exec, result: results.append(exec.arguments.get("n")))
            calls = [{"n": number, "kind": kind} for number, kind in enumerate(kinds)]
            code = f"for call in {calls!r}: start(tools.work(call))\nawait trio.sleep(100)"
            await run.run(code, signal=controller.signal)
            assert not running
        assert broken == []
        assert started == sorted(started)
        assert results == [*range(len(kinds)), None]
        if stops_after is None:
            assert started == list(range(len(kinds)))

    trio.run(scenario, clock=trio.testing.MockClock(autojump_threshold=0))


@pytest.mark.parametrize("count", [200])
async def test_many_sub_calls_leave_no_task_behind(count: int) -> None:
    async with programs() as run:
        Recorder(run.ctx).tool("echo", is_concurrency_safe=safe)
        before = trio.lowlevel.current_statistics().tasks_living
        await run.result(f"await gather(*(tools.echo() for _ in range({count})))")
        assert trio.lowlevel.current_statistics().tasks_living == before
        assert run.ctx.tools.machine.calls == {}
