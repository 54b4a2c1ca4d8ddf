"""Abort signals: one abort, from wherever it comes, and no trace left on long-lived signals."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio
import trio.testing
from dsh_hookspecs import AbortController, AbortError, AbortSignal, DeadlineError
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def controller() -> AbortController:
    """A controller whose signal is live."""
    return AbortController()


# Controllers.


def test_a_signal_is_live_until_its_controller_aborts_it(controller: AbortController) -> None:
    assert (controller.signal.aborted, controller.signal.reason) == (False, None)
    assert controller.abort() is True
    assert controller.signal.aborted and isinstance(controller.signal.reason, AbortError)


def test_the_first_abort_counts(controller: AbortController) -> None:
    first = ValueError("first")
    assert controller.abort(first) and not controller.abort("second")
    assert controller.signal.reason is first


def test_a_text_as_reason_becomes_an_abort_error(controller: AbortController) -> None:
    controller.abort("enough")
    assert str(controller.signal.reason) == "enough" and isinstance(controller.signal.reason, AbortError)


def test_throw_if_aborted_raises_the_reason(controller: AbortController) -> None:
    controller.signal.throw_if_aborted()
    reason = ValueError("stop")
    controller.abort(reason)
    with pytest.raises(ValueError) as caught:
        controller.signal.throw_if_aborted()
    assert caught.value is reason


def test_a_signal_that_nobody_times_has_no_deadline(controller: AbortController) -> None:
    assert controller.signal.deadline == math.inf


# Callbacks.


def test_callbacks_run_once_in_order(controller: AbortController) -> None:
    log: list[int] = []
    for n in range(3):
        controller.signal.add_callback(lambda n=n: log.append(n))  # type: ignore[misc]
    controller.abort()
    controller.abort()
    assert log == [0, 1, 2]


def test_a_callback_added_to_an_aborted_signal_runs_at_once(controller: AbortController) -> None:
    controller.abort()
    log: list[str] = []
    controller.signal.add_callback(lambda: log.append("now"))()
    assert log == ["now"]


def test_an_undone_callback_does_not_run(controller: AbortController) -> None:
    undo = controller.signal.add_callback(lambda: pytest.fail("called"))
    undo()
    undo()
    controller.abort()


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1)], ids=repr)
def test_a_callback_that_raises_is_logged_and_harms_nobody(
    controller: AbortController, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    log: list[str] = []

    def broken() -> None:
        raise error

    controller.signal.add_callback(broken)
    controller.signal.add_callback(lambda: log.append("behind"))
    assert controller.abort()
    assert log == ["behind"] and "broken" in caplog.text


def test_a_callback_may_add_and_undo_callbacks(controller: AbortController) -> None:
    log: list[str] = []
    undos: list[Callable[[], None]] = []

    def first() -> None:
        undos[0]()
        controller.signal.add_callback(lambda: log.append("added"))

    controller.signal.add_callback(first)
    undos.append(controller.signal.add_callback(lambda: log.append("second")))
    controller.abort()
    assert log == ["added", "second"], "the list is the one of the moment of the abort"


# any().


def test_any_of_one_signal_is_that_signal(controller: AbortController) -> None:
    assert AbortSignal.any([controller.signal, controller.signal]) is controller.signal


def test_any_of_none_never_aborts() -> None:
    assert not AbortSignal.any([]).aborted and AbortSignal.any([]).deadline == math.inf


@pytest.mark.parametrize("which", [0, 1])
def test_any_aborts_with_the_first_of_its_sources_and_that_ones_reason(which: int) -> None:
    sources = [AbortController(), AbortController()]
    signal = AbortSignal.any(source.signal for source in sources)
    log: list[str] = []
    signal.add_callback(lambda: log.append("aborted"))
    reason = ValueError()
    sources[which].abort(reason)
    sources[1 - which].abort()
    assert (signal.reason, log) == (reason, ["aborted"])


def test_any_of_an_aborted_signal_is_aborted(controller: AbortController) -> None:
    controller.abort("early")
    signal = AbortSignal.any([AbortController().signal, controller.signal])
    log: list[str] = []
    signal.add_callback(lambda: log.append("now"))
    assert signal.aborted and str(signal.reason) == "early" and log == ["now"]


def test_any_keeps_its_reason_when_a_later_source_aborts_too() -> None:
    one, two = AbortController(), AbortController()
    signal = AbortSignal.any([one.signal, two.signal])
    two.abort("two")
    assert str(signal.reason) == "two"
    one.abort("one")
    assert str(signal.reason) == "two"


def test_any_can_be_nested_and_share_sources(controller: AbortController) -> None:
    inner = AbortSignal.any([controller.signal, AbortController().signal])
    outer = AbortSignal.any([inner, controller.signal])
    log: list[str] = []
    outer.add_callback(lambda: log.append("once"))
    controller.abort()
    assert log == ["once"] and outer.aborted


def _callbacks(signal: AbortSignal) -> int:
    return len(signal._callbacks or ())


def test_a_combined_signal_leaves_no_trace_on_a_long_lived_source(controller: AbortController) -> None:
    for _ in range(100):
        signal = AbortSignal.any([controller.signal, AbortController().signal])
        assert not signal.aborted and _callbacks(controller.signal) == 0
        undos = [signal.add_callback(lambda: None) for _ in range(3)]
        assert _callbacks(controller.signal) == 1
        for undo in undos:
            undo()
        assert _callbacks(controller.signal) == 0


def test_a_combined_signal_that_aborts_leaves_no_trace_on_its_other_sources(controller: AbortController) -> None:
    other = AbortController()
    AbortSignal.any([controller.signal, other.signal]).add_callback(lambda: None)
    other.abort()
    assert _callbacks(controller.signal) == 0


def test_a_combined_signal_that_nobody_keeps_is_freed(controller: AbortController) -> None:
    signal = AbortSignal.any([controller.signal, AbortController().signal])
    signal.add_callback(lambda: None)()
    trace = weakref.ref(signal)
    del signal
    gc.collect()
    assert trace() is None


# follow().


def test_follow_calls_back_and_its_undo_leaves_no_trace(controller: AbortController) -> None:
    other = AbortController()
    signal = AbortSignal.any([controller.signal, other.signal])
    log: list[str] = []
    undo, deadline = signal.follow(lambda: log.append("called"))
    assert deadline == math.inf and _callbacks(controller.signal) == 1
    undo()
    assert _callbacks(controller.signal) == _callbacks(other.signal) == _callbacks(signal) == 0
    signal.follow(lambda: log.append("called"))
    other.abort()
    assert log


async def test_follow_under_the_same_clock_gives_a_deadline_and_needs_no_timer(
    autojump_clock: trio.testing.MockClock, controller: AbortController
) -> None:
    signal = AbortSignal.any([controller.signal, AbortSignal.timeout(5)])
    undo, deadline = signal.follow(lambda: pytest.fail("called"), autojump_clock)
    await trio.sleep(10)
    undo()
    assert deadline == 5 == signal.deadline


async def test_follow_under_another_clock_calls_back(autojump_clock: trio.testing.MockClock) -> None:
    log: list[str] = []
    _, deadline = AbortSignal.timeout(5).follow(lambda: log.append("called"), object())
    await trio.sleep(6)
    assert (log, deadline) == (["called"], math.inf)


# timeout().


@pytest.mark.parametrize("seconds", [-1, math.nan, -math.inf])
def test_a_timeout_that_is_no_duration_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="not negative"):
        AbortSignal.timeout(seconds)


async def test_a_timeout_aborts_when_its_time_has_passed(mock_clock: trio.testing.MockClock) -> None:
    signal = AbortSignal.timeout(5)
    mock_clock.jump(4.9)
    assert not signal.aborted
    mock_clock.jump(0.1)
    assert signal.aborted and isinstance(signal.reason, DeadlineError) and "5 s" in str(signal.reason)


async def test_a_timeout_calls_back_in_time(autojump_clock: trio.testing.MockClock) -> None:
    log: list[float] = []
    AbortSignal.timeout(5).add_callback(lambda: log.append(trio.current_time()))
    await trio.sleep(10)
    assert log == [5]


async def test_a_callback_added_after_the_deadline_runs_at_once(mock_clock: trio.testing.MockClock) -> None:
    signal = AbortSignal.timeout(5)
    mock_clock.jump(6)
    log: list[str] = []
    signal.add_callback(lambda: log.append("now"))
    assert log == ["now"]


async def test_a_timeout_without_callbacks_runs_no_timer(autojump_clock: trio.testing.MockClock) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    signal = AbortSignal.timeout(math.inf)
    undo = signal.add_callback(lambda: None)
    undo()
    await trio.testing.wait_all_tasks_blocked()
    assert trio.lowlevel.current_statistics().tasks_living == before


def test_a_timeout_works_without_a_loop() -> None:
    assert AbortSignal.timeout(0).aborted
    done = threading.Event()
    AbortSignal.timeout(0.01).add_callback(done.set)
    assert done.wait(5)


def test_a_timeout_works_under_asyncio() -> None:
    async def main() -> BaseException:
        return await AbortSignal.timeout(0.001).wait()

    assert isinstance(asyncio.run(main()), DeadlineError)


def test_undoing_a_timeouts_callback_after_its_asyncio_loop_has_closed_is_harmless() -> None:
    async def main() -> Callable[[], None]:
        return AbortSignal.timeout(60).add_callback(lambda: None)

    asyncio.run(main())()


def test_undoing_a_timeouts_callback_after_its_trio_run_is_over_is_harmless() -> None:
    async def main() -> Callable[[], None]:
        return AbortSignal.timeout(60).add_callback(lambda: None)

    trio.run(main)()


# wait().


async def test_wait_gives_the_reason_under_trio(controller: AbortController) -> None:
    reasons: list[BaseException] = []

    async def wait() -> None:
        reasons.append(await controller.signal.wait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        controller.abort(reason := ValueError())
    assert reasons == [reason] and _callbacks(controller.signal) == 0


async def test_wait_on_an_aborted_signal_returns(controller: AbortController) -> None:
    controller.abort("done")
    assert str(await controller.signal.wait()) == "done"


async def test_a_cancelled_wait_leaves_no_trace(controller: AbortController) -> None:
    signal = AbortSignal.any([controller.signal, AbortController().signal])
    with trio.CancelScope() as scope:
        scope.cancel()
        await signal.wait()
    assert scope.cancelled_caught and _callbacks(controller.signal) == 0


def test_wait_gives_the_reason_under_asyncio(controller: AbortController) -> None:
    async def main() -> BaseException:
        waiting = asyncio.create_task(controller.signal.wait())
        await asyncio.sleep(0)
        controller.abort("stop")
        return await waiting

    assert str(asyncio.run(main())) == "stop" and _callbacks(controller.signal) == 0


def test_a_cancelled_wait_under_asyncio_leaves_no_trace(controller: AbortController) -> None:
    async def main() -> None:
        waiting = asyncio.create_task(controller.signal.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert _callbacks(controller.signal) == 0


# trio as the guest of asyncio.


def beside(trio_main: Callable[[], Awaitable[Any]], asyncio_main: Callable[[], Awaitable[Any]]) -> tuple[Any, Any]:
    """What two functions give that run in one thread: one under asyncio, one under a trio that is its guest."""

    async def both() -> tuple[Any, Any]:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        trio.lowlevel.start_guest_run(
            trio_main,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=lambda outcome: done.set_result(outcome.unwrap()),
        )
        async with asyncio.timeout(10):
            of_asyncio = await asyncio_main()
            return await done, of_asyncio

    return asyncio.run(both())


def test_wait_works_on_both_sides_of_a_guest_run(controller: AbortController) -> None:
    """Whichever of them aborts."""
    other = AbortController()

    async def in_trio() -> BaseException:
        await trio.testing.wait_all_tasks_blocked()
        controller.abort("from trio")
        return await other.signal.wait()

    async def in_asyncio() -> BaseException:
        reason = await controller.signal.wait()
        other.abort("from asyncio")
        return reason

    assert [*map(str, beside(in_trio, in_asyncio))] == ["from asyncio", "from trio"]
    assert _callbacks(controller.signal) == _callbacks(other.signal) == 0


def test_a_timeout_works_on_both_sides_of_a_guest_run() -> None:
    """Also for who waits on the other side."""
    made: list[AbortSignal] = []

    async def in_trio() -> BaseException:
        made.append(AbortSignal.timeout(0.05))
        await made[0].wait()
        return await AbortSignal.timeout(0.01).wait()

    async def in_asyncio() -> BaseException:
        while not made:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await made[0].wait()
        return await AbortSignal.timeout(0.01).wait()

    assert [type(reason) for reason in beside(in_trio, in_asyncio)] == [DeadlineError, DeadlineError]


# Threads.


async def test_abort_from_another_thread_wakes_a_waiter_under_trio(controller: AbortController) -> None:
    signal = AbortSignal.any([AbortController().signal, controller.signal])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(signal.wait)
        await trio.testing.wait_all_tasks_blocked()
        await trio.to_thread.run_sync(controller.abort, "from a thread")
    assert str(signal.reason) == "from a thread"


def test_abort_from_another_thread_wakes_a_waiter_under_asyncio(controller: AbortController) -> None:
    async def main() -> BaseException:
        waiting = asyncio.create_task(controller.signal.wait())
        await asyncio.sleep(0)
        threading.Thread(target=controller.abort, args=["from a thread"]).start()
        return await waiting

    assert str(asyncio.run(main())) == "from a thread"


def test_abort_after_the_loop_of_a_waiter_is_over_is_harmless(controller: AbortController) -> None:
    async def main() -> None:
        with trio.move_on_after(0):
            await controller.signal.wait()

    trio.run(main)
    assert controller.abort()


def test_of_many_threads_that_abort_exactly_one_did(controller: AbortController) -> None:
    calls: list[int] = []
    wins: list[bool] = []
    controller.signal.add_callback(lambda: calls.append(1))
    barrier = threading.Barrier(8)

    def abort() -> None:
        barrier.wait()
        wins.append(controller.abort())

    _in_threads(abort for _ in range(8))
    assert (sum(wins), calls) == (1, [1])


def test_callbacks_that_come_and_go_in_threads_while_sources_abort_run_at_most_once_and_leave_nothing() -> None:
    for _ in range(30):
        sources = [AbortController() for _ in range(3)]
        signal = AbortSignal.any(source.signal for source in sources)
        calls: list[int] = []
        kept: list[int] = []
        barrier = threading.Barrier(5)

        def listen(
            number: int, signal: Any = signal, calls: Any = calls, kept: Any = kept, wait: Any = barrier
        ) -> None:
            wait.wait()
            for n in range(20):
                undo = signal.add_callback(lambda n=n: calls.append(100 * number + n))
                if n % 2:
                    undo()
                else:
                    kept.append(100 * number + n)

        def abort(source: AbortController = sources[1], wait: Any = barrier) -> None:
            wait.wait()
            source.abort()

        _in_threads([abort, *((lambda n=n: listen(n)) for n in range(4))])  # type: ignore[misc]
        assert len(calls) == len(set(calls)) and set(kept) <= set(calls)
        assert all(_callbacks(source.signal) == 0 for source in sources)


def _in_threads(functions: Any) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive(), "a deadlock"


# Against an oracle.


def _tree(draw: Any, leaves: list[AbortSignal]) -> Iterator[tuple[AbortSignal, frozenset[int]]]:
    made: list[tuple[AbortSignal, frozenset[int]]] = [(leaf, frozenset([n])) for n, leaf in enumerate(leaves)]
    for _ in range(draw(st.integers(1, 4))):
        parts = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
        made.append((AbortSignal.any(signal for signal, _ in parts), frozenset().union(*(under for _, under in parts))))
    return iter(made)


@given(st.data())
def test_a_combined_signal_is_aborted_exactly_when_a_source_is(data: st.DataObject) -> None:
    controllers = [AbortController() for _ in range(3)]
    signals = list(_tree(data.draw, [controller.signal for controller in controllers]))
    counts = [0] * len(signals)
    undos: dict[int, Callable[[], None]] = {}

    def count(n: int) -> Callable[[], None]:
        def call() -> None:
            counts[n] += 1

        return call

    for n in data.draw(st.sets(st.integers(0, len(signals) - 1))):
        undos[n] = signals[n][0].add_callback(count(n))
    dropped = data.draw(st.sets(st.sampled_from(sorted(undos)))) if undos else set()
    for n in dropped:
        undos.pop(n)()
    aborted = data.draw(st.lists(st.integers(0, 2), unique=True))
    for which in aborted:
        controllers[which].abort()
    for n, (signal, under) in enumerate(signals):
        assert signal.aborted == bool(under & set(aborted))
        assert counts[n] == (1 if n in undos and under & set(aborted) else 0)
    for undo in undos.values():
        undo()
    assert all(_callbacks(signal) == 0 for signal, _ in signals)
