"""Contract 5.6: a model's batch of calls."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import trio
import trio.testing
from pipeline_kit import Recorder, code, failure, raising, success

from dsh_runtime import AbortController, Deny


class Batch:
    """Tools whose bodies wait to be let go, and a batch of calls that runs beside the test."""

    def __init__(self, rec: Recorder, nursery: trio.Nursery) -> None:
        self.rec = rec
        self.running: list[str] = []
        self.most = 0
        self.results: list[Any] = []
        self.caller = AbortController()
        self._nursery = nursery
        self._go: dict[str, trio.Event] = {}
        rec.tool("par", self._body, is_concurrency_safe=lambda args: True, finalized=False)
        rec.tool("exc", self._body, finalized=False)

    async def _body(self, args: Any, exec: Any) -> str:
        self.running.append(exec.call_id)
        self.most = max(self.most, len(self.running))
        try:
            await self._event(exec.call_id).wait()
        finally:
            self.running.remove(exec.call_id)
        return str(exec.call_id)

    def _event(self, call_id: str) -> trio.Event:
        return self._go.setdefault(call_id, trio.Event())

    async def start(self, names: Iterable[str], **more: Any) -> None:
        """Start a batch; the ids are 0, 1, 2 and so on."""
        calls = [
            self.rec.input(name, call_id=str(index), signal=self.caller.signal) for index, name in enumerate(names)
        ]

        async def run() -> None:
            self.results += await self.rec.ctx.tools.execute_batch(calls, **more)

        self._nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()

    async def let_go(self, *call_ids: int) -> None:
        for call_id in call_ids:
            self._event(str(call_id)).set()
        await trio.testing.wait_all_tasks_blocked()

    def values(self) -> list[Any]:
        return [success(result).value for result in self.results]


async def test_an_empty_batch_has_no_results(rec: Recorder) -> None:
    assert list(await rec.ctx.tools.execute_batch([])) == []


async def test_consecutive_parallel_calls_overlap(rec: Recorder, nursery: trio.Nursery) -> None:
    batch = Batch(rec, nursery)
    await batch.start(["par", "par", "par"])
    assert batch.running == ["0", "1", "2"]
    await batch.let_go(0, 1, 2)
    assert batch.values() == ["0", "1", "2"]


async def test_results_keep_the_order_of_the_batch(rec: Recorder, nursery: trio.Nursery) -> None:
    batch = Batch(rec, nursery)
    await batch.start(["par", "par", "par"])
    for call_id in (2, 1, 0):
        await batch.let_go(call_id)
    assert batch.values() == ["0", "1", "2"]


async def test_exclusive_calls_run_alone_and_in_order(rec: Recorder, nursery: trio.Nursery) -> None:
    batch = Batch(rec, nursery)
    await batch.start(["exc", "exc"])
    assert batch.running == ["0"]
    await batch.let_go(0)
    assert batch.running == ["1"]
    await batch.let_go(1)
    assert batch.values() == ["0", "1"]
    assert batch.most == 1


async def test_an_exclusive_call_is_a_barrier(rec: Recorder, nursery: trio.Nursery) -> None:
    batch = Batch(rec, nursery)
    await batch.start(["par", "par", "exc", "par", "par"])
    assert batch.running == ["0", "1"]
    await batch.let_go(1)
    assert batch.running == ["0"]
    await batch.let_go(0)
    assert batch.running == ["2"]
    await batch.let_go(2)
    assert batch.running == ["3", "4"]
    await batch.let_go(3, 4)
    assert batch.values() == ["0", "1", "2", "3", "4"]


async def test_the_pool_rolls(rec: Recorder, nursery: trio.Nursery) -> None:
    batch = Batch(rec, nursery)
    await batch.start(["par"] * 4, max_parallel=2)
    assert batch.running == ["0", "1"]
    await batch.let_go(1)
    assert batch.running == ["0", "2"]
    await batch.let_go(0, 2, 3)
    assert batch.values() == ["0", "1", "2", "3"]
    assert batch.most == 2


async def test_ten_run_side_by_side_unless_said_otherwise(rec: Recorder, nursery: trio.Nursery) -> None:
    batch = Batch(rec, nursery)
    await batch.start(["par"] * 12)
    assert len(batch.running) == 10
    await batch.let_go(*range(12))
    assert len(batch.results) == 12


async def test_pre_and_post_execute_and_results_keep_the_order_of_the_batch(
    rec: Recorder, nursery: trio.Nursery
) -> None:
    batch = Batch(rec, nursery)
    rec.pre("P", lambda exec, next: rec.log(f"pre {exec.call_id}") or next())
    rec.post("Q", lambda exec, result, next: rec.log(f"post {exec.call_id}") or next())
    rec.observe("R", lambda exec, result: rec.log(f"result {exec.call_id}"))
    await batch.start(["par", "par", "par"])
    await batch.let_go(2)
    assert not [stage for stage in rec.stages if stage.startswith("post ")]
    await batch.let_go(1)
    await batch.let_go(0)
    for kind in ("pre", "post", "result"):
        assert [stage for stage in rec.stages if stage.startswith(f"{kind} ")] == [f"{kind} {n}" for n in range(3)]


async def test_only_one_pre_execute_runs_at_a_time(rec: Recorder, nursery: trio.Nursery) -> None:
    inside: list[int] = []

    async def slow(exec: Any, next: Any) -> Any:
        inside.append(1)
        assert len(inside) == 1
        await trio.testing.wait_all_tasks_blocked()
        inside.pop()
        return await next()

    rec.pre("P", slow)
    rec.tool("par", is_concurrency_safe=lambda args: True)
    results = await rec.ctx.tools.execute_batch([rec.input("par") for _ in range(3)])
    assert [success(result).value for result in results] == ["ran:par"] * 3


async def test_a_failing_sibling_leaves_the_others_alone(rec: Recorder) -> None:
    rec.tool("par", is_concurrency_safe=lambda args: True)
    rec.tool("bad", raising(RuntimeError("boom")), is_concurrency_safe=lambda args: True)
    rec.observe("R")
    calls = [rec.input(name) for name in ("par", "bad", "missing", "par")]
    results = list(await rec.ctx.tools.execute_batch(calls))
    assert [result.is_error for result in results] == [False, True, True, False]
    assert code(results[2]) == "UNKNOWN_TOOL"
    assert rec.results == results


async def test_a_denied_body_in_a_batch_never_starts(rec: Recorder) -> None:
    rec.tool("par", is_concurrency_safe=lambda args: True)
    rec.pre("P", lambda exec, next: Deny("no") if exec.call_id == "second" else next())
    calls = [rec.input("par", call_id=call_id) for call_id in ("first", "second", "third")]
    results = await rec.ctx.tools.execute_batch(calls)
    assert [code(result) for result in results] == [None, "DENIED", None]
    assert rec.count("body:") == 2


async def test_classification_is_read_again_right_before_each_start(rec: Recorder, nursery: trio.Nursery) -> None:
    batch = Batch(rec, nursery)
    safe = [True]
    rec.tool("fickle", batch._body, is_concurrency_safe=lambda args: safe[0], finalized=False)
    await batch.start(["exc", "fickle", "fickle"])
    safe[0] = False
    await batch.let_go(0)
    assert batch.running == ["1"]
    await batch.let_go(1, 2)
    assert batch.values() == ["0", "1", "2"]


async def test_an_abort_starts_nothing_new_and_drains_what_runs(rec: Recorder, nursery: trio.Nursery) -> None:
    batch = Batch(rec, nursery)
    rec.observe("R")
    await batch.start(["par", "par", "exc", "par"], max_parallel=2)
    assert batch.running == ["0", "1"]
    batch.caller.abort()
    await trio.testing.wait_all_tasks_blocked()
    assert batch.running == []
    assert rec.count("body:") == 2
    assert [code(result) for result in batch.results] == [
        "ABORTED",
        "ABORTED",
        "ABORTED_BEFORE_DISPATCH",
        "ABORTED_BEFORE_DISPATCH",
    ]
    assert rec.results == batch.results


async def test_a_batch_whose_callers_scope_is_cancelled_leaves_nothing_running(rec: Recorder) -> None:
    async with trio.open_nursery() as nursery:
        batch = Batch(rec, nursery)
        rec.observe("R")
        await batch.start(["par", "par", "exc"])
        nursery.cancel_scope.cancel()
    assert batch.running == []
    assert not batch.results
    assert [code(result) for result in rec.results[:2]] == ["ABORTED", "ABORTED"]


async def test_observers_of_a_batch_see_each_result_once(rec: Recorder) -> None:
    rec.tool("par", is_concurrency_safe=lambda args: True)
    rec.tool("exc")
    rec.observe("R")
    calls = [rec.input(name) for name in ("par", "exc", "par")]
    results = list(await rec.ctx.tools.execute_batch(calls))
    assert [seen is result for seen, result in zip(rec.results, results, strict=True)] == [True] * 3
    assert [seen.call_id for seen in rec.executions] == [call.call_id for call in calls]


async def test_a_guarded_call_in_a_batch_has_its_own_code(rec: Recorder) -> None:
    rec.tool("par", is_concurrency_safe=lambda args: True)
    rec.guard("G", lambda exec: "no" if exec.arguments else None)
    results = await rec.ctx.tools.execute_batch([rec.input("par"), rec.input("par", {"x": 1})])
    success(results[0])
    failure(results[1], "GUARDED")
