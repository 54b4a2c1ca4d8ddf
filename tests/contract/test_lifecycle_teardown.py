"""Contract 2.4, 2.7: unwinding - its order, its deadline, its errors, and what a cancelled host leaves."""

# ruff: noqa: ASYNC105  # an undo gives something to await

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import pytest
import trio
import trio.testing
from core_kit import Gate, Log, Plugin, Specs, left_over, settled, stubborn

from dsh_runtime import Context, Fiber, State
from dsh_runtime.core.errors import TeardownTimeoutError
from dsh_runtime.core.kernel import open_kernel


async def test_children_effects_and_tasks_are_undone_last_first(root: Context) -> None:
    log = Log()

    async def task(name: str) -> None:
        try:
            await trio.sleep_forever()
        finally:
            log.append(f"-{name}")

    def apply(ctx: Context) -> None:
        ctx.effect(lambda: lambda: log.append("-effect 1"))
        ctx.start_soon(task, "task 1")
        ctx.plugin(log.plugin("child 1"))
        ctx.effect(lambda: lambda: log.append("-effect 2"))
        ctx.scope("s").ctx.effect(lambda: lambda: log.append("-scoped"))
        ctx.plugin(log.plugin("child 2"))
        ctx.start_soon(task, "task 2")

    fiber = root.plugin(apply)
    await settled(root)
    await trio.testing.wait_all_tasks_blocked()
    log.clear()
    await fiber.dispose()
    expected = ["-task 2", "-child 2", "-scoped", "-effect 2", "-child 1", "-task 1", "-effect 1"]
    assert log == expected


async def test_effects_go_one_after_the_other(root: Context) -> None:
    log = Log()

    def slow(name: str) -> Any:
        async def undo() -> None:
            log.append(f"{name}...")
            await trio.testing.wait_all_tasks_blocked()
            log.append(name)

        return lambda: undo

    def apply(ctx: Context) -> None:
        ctx.effect(slow("a"))
        ctx.effect(slow("b"))

    fiber = root.plugin(apply)
    await fiber.wait()
    await fiber.dispose()
    assert log == ["b...", "b", "a...", "a"]


async def test_tasks_are_cancelled_and_awaited(root: Context) -> None:
    log = Log()

    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.testing.wait_all_tasks_blocked()
            log.append("rested")

    fiber = root.plugin(Plugin("a", lambda ctx: ctx.start_soon(task)))
    await fiber.wait()
    await trio.testing.wait_all_tasks_blocked()
    await fiber.dispose()
    assert log == ["rested"]


async def test_a_failing_undo_neither_stops_the_others_nor_gets_lost(root: Context) -> None:
    log = Log()

    def broken() -> None:
        raise ValueError("broken")

    def apply(ctx: Context) -> None:
        ctx.effect(lambda: lambda: log.append("first"))
        ctx.effect(lambda: broken)
        ctx.effect(lambda: lambda: log.append("last"))

    fiber = root.plugin(apply)
    await fiber.wait()
    with pytest.raises(ValueError, match="broken"):
        await fiber.dispose()
    assert (log, fiber.state) == (["last", "first"], State.DISPOSED)


async def test_failures_of_several_undo_steps_come_out_as_one_exception_group(root: Context) -> None:
    def broken(name: str) -> Any:
        def undo() -> None:
            raise ValueError(name)

        return lambda: undo

    def apply(ctx: Context) -> None:
        ctx.effect(broken("a"))
        ctx.effect(broken("b"))

    fiber = root.plugin(Plugin("p", apply))
    await fiber.wait()
    with pytest.raises(BaseExceptionGroup) as caught:
        await fiber.dispose()
    assert [str(error) for error in caught.value.exceptions] == ["b", "a"]
    assert "plugin 'p'" in str(caught.value)


async def test_a_failing_undo_is_logged_even_if_nobody_awaits_the_disposal(
    root: Context, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ValueError("broken")

    fiber = root.plugin(Plugin("p", lambda ctx: broken))
    await fiber.wait()
    fiber.dispose()
    await settled(root)
    assert "undoing plugin 'p' failed" in caplog.text and "broken" in caplog.text


async def test_the_errors_of_an_earlier_unloading_are_not_told_again(root: Context) -> None:
    def apply(ctx: Context, config: bool) -> Any:
        def broken() -> None:
            raise ValueError("broken")

        return broken if config else None

    fiber = root.plugin(Plugin("p", apply), True)
    await fiber.wait()
    await fiber.update(False)
    await fiber.dispose()


async def test_an_undo_that_never_ends_is_cancelled_at_the_deadline_and_reported(
    root: Context, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()

    def apply(ctx: Context) -> None:
        ctx.effect(lambda: lambda: log.append("still undone"))
        ctx.effect(lambda: trio.sleep_forever)

    fiber = root.plugin(Plugin("p", apply))
    await fiber.wait()
    with pytest.raises(TeardownTimeoutError, match=r"plugin 'p' did not end before the deadline; let it end"):
        await fiber.dispose()
    assert (log, trio.current_time()) == (["still undone"], 10)


async def test_the_deadline_is_for_all_undo_steps_of_a_plugin_together(
    root: Context, autojump_clock: trio.testing.MockClock
) -> None:
    def apply(ctx: Context) -> None:
        for _ in range(5):
            ctx.effect(lambda: lambda: trio.sleep(4))

    fiber = root.plugin(apply)
    await fiber.wait()
    with pytest.raises(BaseExceptionGroup) as caught:
        await fiber.dispose()
    assert (len(caught.value.exceptions), trio.current_time()) == (3, 10)


async def test_a_childs_undo_that_never_ends_does_not_cost_its_siblings_their_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = Log()

    async def slow() -> None:
        await trio.sleep(1)
        log.append("slow")

    async with open_kernel(teardown_timeout=5) as root:
        root.plugin(Plugin("first", lambda ctx: ctx.effect(lambda: slow) and None))
        root.plugin(Plugin("hung", lambda ctx: ctx.effect(lambda: trio.sleep_forever) and None))
        await settled(root)
    assert (log, trio.current_time()) == (["slow"], 6)


async def test_the_time_that_a_child_takes_is_not_its_parents(
    root: Context, autojump_clock: trio.testing.MockClock
) -> None:
    def slow(seconds: float) -> Plugin:
        return Plugin("child", lambda ctx: ctx.effect(lambda: lambda: trio.sleep(seconds)) and None)

    def apply(ctx: Context) -> None:
        ctx.effect(lambda: lambda: trio.sleep(9))
        ctx.plugin(slow(9))
        ctx.plugin(slow(9))

    fiber = root.plugin(apply)
    await settled(root)
    await fiber.dispose()
    assert trio.current_time() == 27


async def test_a_task_given_up_by_an_earlier_life_cannot_fail_the_next(
    root: Context, autojump_clock: trio.testing.MockClock
) -> None:
    gate = Gate()

    async def crash() -> None:
        await stubborn(gate)
        raise ValueError("late")

    fiber = root.plugin(Plugin("p", lambda ctx, config: ctx.start_soon(crash) if config else None), True)
    await gate.reached.wait()
    await fiber.update(False)
    gate.go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert fiber.state is State.ACTIVE


async def test_a_task_that_swallows_cancellation_does_not_hold_up_its_plugin_for_ever(
    root: Context, autojump_clock: trio.testing.MockClock
) -> None:
    gate = Gate()
    fiber = root.plugin(Plugin("p", lambda ctx: ctx.start_soon(stubborn, gate)))
    await gate.reached.wait()
    with pytest.raises(TeardownTimeoutError, match="the task stubborn of plugin 'p'"):
        await fiber.dispose()
    assert fiber.state is State.DISPOSED
    gate.go.set()


async def test_a_child_whose_apply_swallows_cancellation_does_not_hold_up_its_parent_for_ever(
    root: Context, autojump_clock: trio.testing.MockClock
) -> None:
    gate = Gate()
    log = Log()

    async def apply(ctx: Context) -> None:
        await stubborn(gate)

    parent = root.plugin(log.plugin("p", lambda ctx: ctx.plugin(Plugin("c", apply)) and None))
    await gate.reached.wait()
    with pytest.raises(TeardownTimeoutError, match=r"plugin 'c' goes on with apply\(\)"):
        await parent.dispose()
    assert (parent.state, log) == (State.DISPOSED, ["+p", "-p"])
    gate.go.set()


async def test_a_user_whose_apply_swallows_cancellation_does_not_hold_up_its_provider_for_ever(
    root: Context, autojump_clock: trio.testing.MockClock
) -> None:
    gate = Gate()
    owner = root.plugin(Plugin("p", lambda ctx: ctx.provide("x", 1)))

    async def apply(ctx: Context) -> None:
        await stubborn(gate)

    root.plugin(Plugin("c", apply, ["x"]))
    await gate.reached.wait()
    with pytest.raises(TeardownTimeoutError, match="plugin 'c' goes on"):
        await owner.dispose()
    gate.go.set()


async def test_teardown_is_shielded_from_the_cancellation_of_whoever_waits(root: Context) -> None:
    gate = Gate()
    log = Log()

    async def undo() -> None:
        await gate.stop()
        log.append("undone")

    fiber = root.plugin(Plugin("a", lambda ctx: ctx.effect(lambda: undo) and None))
    await fiber.wait()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_await, fiber.dispose())
            await gate.reached.wait()
            scope.cancel()
    gate.go.set()
    await settled(root)
    assert (log, fiber.state) == (["undone"], State.DISPOSED)


async def _await(wish: Any) -> None:
    await wish


async def test_a_generator_effect_is_undone_last_first(root: Context) -> None:
    log = Log()

    def effect() -> Any:
        yield lambda: log.append("one")
        yield lambda: log.append("two")

    undo = root.effect(effect)
    undo()
    undo()
    assert log == ["two", "one"]


async def test_a_half_done_generator_effect_undoes_what_it_did(root: Context) -> None:
    log = Log()

    def effect() -> Any:
        yield lambda: log.append("one")
        yield lambda: log.append("two")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        root.effect(effect)
    assert (log, left_over(root)) == (["two", "one"], {})


async def test_a_half_done_generator_effect_whose_undo_waits_is_undone_with_its_plugin(root: Context) -> None:
    log = Log()

    async def slow() -> None:
        await trio.lowlevel.checkpoint()
        log.append("slow")

    def effect() -> Any:
        yield lambda: log.append("one")
        yield slow
        yield lambda: log.append("three")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await root.plugin(Plugin("a", lambda ctx: ctx.effect(effect) and None)).wait()
    assert log == ["three", "slow", "one"]


async def test_what_a_generator_effect_registers_as_it_goes_is_undone_in_one_order(root: Context) -> None:
    log = Log()

    def apply(ctx: Context) -> None:
        def effect() -> Any:
            yield lambda: log.append("one")
            ctx.effect(lambda: lambda: log.append("inner"))
            yield lambda: log.append("two")

        ctx.effect(effect)

    fiber = root.plugin(apply)
    await fiber.wait()
    await fiber.dispose()
    assert log == ["two", "inner", "one"]


@pytest.mark.parametrize("outcome", [1, "undo", object()])
async def test_an_effect_that_gives_no_undo_is_an_error_that_says_what_to_return(root: Context, outcome: Any) -> None:
    with pytest.raises(TypeError, match="return its undo"):
        root.effect(lambda: outcome)


async def test_an_async_setup_is_an_error_and_not_a_coroutine_left_behind(root: Context) -> None:
    async def setup() -> None: ...

    with pytest.raises(TypeError, match="return its undo"):
        root.effect(setup)


async def test_an_effect_may_need_no_undo(root: Context) -> None:
    root.effect(lambda: None)()
    assert left_over(root) == {}


async def test_an_undo_called_early_and_again_and_at_the_end_runs_once(root: Context) -> None:
    log = Log()
    undos: list[Any] = []
    fiber = root.plugin(lambda ctx: undos.append(ctx.effect(lambda: lambda: log.append("x"))), id="a")
    await fiber.wait()
    undos[0]()
    undos[0]()
    await fiber.dispose()
    undos[0]()
    assert log == ["x"]


async def test_an_async_undo_called_early_and_awaited_runs_once(root: Context) -> None:
    log = Log()

    async def undo() -> None:
        log.append("x")

    early = root.effect(lambda: undo)
    await early()
    assert (early(), log, left_over(root)) == (None, ["x"], {})


async def test_an_async_undo_called_early_and_not_awaited_is_not_lost(root: Context) -> None:
    log = Log()

    async def undo() -> None:
        log.append("x")

    effects: list[Any] = []
    fiber = root.plugin(lambda ctx: effects.append(ctx.effect(lambda: undo)), id="a")
    await fiber.wait()
    effects[0]()
    await fiber.dispose()
    assert log == ["x"]


# The embedding task.


async def test_an_exception_of_the_body_stays_unwrapped() -> None:
    error = ValueError("mine")
    with pytest.raises(ValueError) as caught:
        async with open_kernel() as root:
            root.plugin(Plugin("a"))
            raise error
    assert caught.value is error


async def test_a_cancelled_host_unwinds_last_first_and_cancelled_goes_on() -> None:
    log = Log()
    with trio.CancelScope() as scope:
        async with open_kernel() as root:
            root.plugin(log.plugin("a", lambda ctx: ctx.plugin(log.plugin("a1")) and None))
            root.plugin(log.plugin("b"))
            await settled(root)
            log.clear()
            scope.cancel()
            await trio.sleep_forever()
    assert (log, scope.cancelled_caught) == (["-b", "-a1", "-a"], True)


async def test_a_cancelled_host_ends_background_tasks_in_their_turn() -> None:
    log = Log()

    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            log.append("task")

    async def slow() -> None:
        await trio.testing.wait_all_tasks_blocked()
        log.append("effect")

    def apply(ctx: Context) -> None:
        ctx.start_soon(task)
        ctx.effect(lambda: slow)

    with trio.CancelScope() as scope:
        async with open_kernel() as root:
            root.plugin(apply)
            await settled(root)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            await trio.sleep_forever()
    assert log == ["effect", "task"]


async def test_a_host_that_is_opened_in_a_cancelled_scope_leaves_nothing() -> None:
    log = Log()
    with trio.CancelScope() as scope:
        scope.cancel()
        async with open_kernel() as root:
            root.plugin(log.plugin("a"))
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught and log in ([], ["+a", "-a"])


@pytest.mark.parametrize("steps", range(0, 40, 3))
async def test_cancelling_the_embedding_task_at_any_point_leaves_nothing(steps: int) -> None:
    log = Log()
    kernels: list[Any] = []

    async def slow(ctx: Context) -> None:
        await trio.lowlevel.checkpoint()
        ctx.effect(lambda: lambda: trio.lowlevel.checkpoint())

    async def host() -> None:
        async with open_kernel() as root:
            kernels.append(root)
            root.plugin(log.plugin("p", lambda ctx: ctx.provide("x", 1)))
            root.plugin(log.plugin("c", slow, ["x"]))
            child = root.plugin(log.plugin("q", lambda ctx: ctx.plugin(log.plugin("r", slow)) and None))
            await settled(root)
            await child.update(None)
            await root.fiber.dispose()
            root.plugin(log.plugin("again", slow))
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(host)
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    balance = Counter[str]()
    for entry in log:
        balance[entry[1:]] += 1 if entry[0] == "+" else -1
    assert not any(balance.values())
    for root in kernels:
        assert left_over(root) == {} and root.fiber.state is State.DISPOSED


def _interrupt() -> None:
    raise KeyboardInterrupt


async def _interrupt_later() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "apply",
    [
        lambda ctx: _interrupt(),
        lambda ctx: ctx.start_soon(_interrupt_later),
        lambda ctx: _update_with(ctx, lambda: _interrupt()),
        lambda ctx: _update_with(ctx, _interrupt_later),
    ],
    ids=["apply", "task", "undo", "async undo"],
)
async def test_a_keyboard_interrupt_in_a_plugin_ends_the_host_and_is_not_swallowed(apply: Any) -> None:
    log = Log()
    with pytest.raises(KeyboardInterrupt):
        async with open_kernel() as root:
            root.plugin(log.plugin("other"))
            root.plugin(log.plugin("a", apply))
            await trio.sleep_forever()
    assert sorted(log) == ["+a", "+other", "-a", "-other"]


def _update_with(ctx: Context, undo: Any) -> None:
    """Unload the plugin at once, with an undo that is interrupted."""
    ctx.effect(lambda: undo)
    ctx.fiber.dispose()


async def test_a_system_exit_in_a_plugin_is_an_ordinary_failure(root: Context) -> None:
    def apply(ctx: Context) -> None:
        raise SystemExit(3)

    fiber = root.plugin(apply)
    with pytest.raises(SystemExit):
        await fiber.wait()
    assert fiber.state is State.FAILED


async def test_a_group_of_ordinary_failures_fails_the_fiber_alone(root: Context) -> None:
    async def apply(ctx: Context) -> None:
        raise BaseExceptionGroup("two", [SystemExit(1), ValueError("no")])

    fiber = root.plugin(apply)
    with pytest.raises(BaseExceptionGroup):
        await fiber.wait()
    assert fiber.state is State.FAILED


async def test_a_group_with_a_keyboard_interrupt_is_not_swallowed() -> None:
    async def apply(ctx: Context) -> None:
        raise BaseExceptionGroup("two", [KeyboardInterrupt(), ValueError("no")])

    with pytest.raises(BaseExceptionGroup) as caught:
        async with open_kernel() as root:
            root.plugin(apply)
            await trio.sleep_forever()
    assert caught.value.subgroup(KeyboardInterrupt) is not None


async def test_a_drainer_that_fails_does_not_keep_a_plugin_from_unloading(root: Context) -> None:
    async def broken(fiber: Fiber) -> None:
        raise ValueError("no")

    root.fiber.kernel.add_drainer(broken)
    fiber = root.plugin(Plugin("a"))
    await fiber.wait()
    await fiber.dispose()
    assert fiber.state is State.DISPOSED


async def test_a_plugin_is_withdrawn_before_it_is_drained(root: Context) -> None:
    seen: list[Any] = []

    async def look(fiber: Fiber) -> None:
        seen.append((fiber.id, root.get("x"), fiber.state))

    owner = root.plugin(Plugin("p", lambda ctx: ctx.provide("x", 1)))
    await owner.wait()
    undo = root.fiber.kernel.add_drainer(look)
    await owner.dispose()
    undo()
    assert seen == [("p", None, State.UNLOADING)]


async def test_a_thousand_mounts_and_disposals_leave_nothing(root: Context) -> None:
    root.add_hookspecs(Specs)

    def apply(ctx: Context) -> None:
        ctx.provide("x", 1)
        ctx.on("demo/seen", lambda what: None)
        ctx.scope().ctx.on("demo/seen", lambda what: None)
        ctx.start_soon(trio.sleep_forever)
        ctx.isolate("y").provide("y", 1)
        ctx.plugin(Plugin("child"))

    async def cycle(times: int) -> Counter[str]:
        for _ in range(times):
            fiber = root.plugin(Plugin("a", apply))
            await fiber.wait()
            root.emit("demo/seen", "x", 1)
            await fiber.dispose()
        del fiber
        gc.collect()
        return Counter(type(item).__qualname__ for item in gc.get_objects())

    before = await cycle(20)
    after = await cycle(1000)
    grown = {kind: n - before[kind] for kind, n in after.items() if n - before[kind] > 100}
    assert grown == {}
    assert {"Fiber": after["Fiber"], "Entry": after["Entry"], "Step": after["Step"]} == {
        "Fiber": before["Fiber"],
        "Entry": before["Entry"],
        "Step": before["Step"],
    }
