"""Contract 2.7: one transition at a time, the latest wish wins, and nobody waits for itself."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from core_kit import Gate, Log, Plugin, left_over, provider, settled

from dsh_runtime import Context, DeadlockError, DisposedError, Fiber, State


async def test_disposing_a_fiber_that_is_still_loading_cancels_its_apply(root: Context) -> None:
    log = Log()
    gate = Gate()

    async def apply(ctx: Context) -> None:
        try:
            await gate.stop()
        except trio.Cancelled:
            log.append("cancelled")
            raise

    fiber = root.plugin(log.plugin("a", apply))
    await gate.reached.wait()
    await fiber.dispose()
    assert (log, fiber.state) == (["+a", "cancelled", "-a"], State.DISPOSED)


async def test_an_apply_whose_nursery_fails_while_it_is_cancelled_harms_nobody_else(root: Context) -> None:
    gate = Gate()

    async def fail() -> None:
        try:
            await gate.stop()
        except trio.Cancelled:
            raise ValueError("cleaning up failed") from None

    async def apply(ctx: Context) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(trio.sleep_forever)

    fiber = root.plugin(apply)
    await gate.reached.wait()
    await fiber.dispose()
    await root.plugin(Plugin("other")).wait()
    assert left_over(root)["fibers"][0].id == "other"


async def test_disposing_at_the_moment_of_the_turn_never_applies(root: Context) -> None:
    log = Log()

    def dispose(fiber: Fiber, previous: str) -> None:
        if fiber.state == "loading":
            fiber.dispose()

    root.on("plugin/state", dispose)
    fiber = root.plugin(log.plugin("a"))
    await fiber.wait()
    assert (fiber.state, log) == (State.DISPOSED, [])


@pytest.mark.parametrize("moment", ["pending", "loading", "active", "unloading", "failed"])
async def test_disposing_is_possible_in_every_state(root: Context, moment: str) -> None:
    gate = Gate()

    async def apply(ctx: Context) -> None:
        if moment == "loading":
            await gate.stop()
        if moment == "unloading":
            ctx.effect(lambda: gate.stop)
        if moment == "failed":
            raise ValueError

    fiber = root.plugin(Plugin("a", apply, ["missing"] if moment == "pending" else ()))
    if moment == "loading":
        await gate.reached.wait()
    else:
        await settled(root)
    if moment == "unloading":
        fiber.update(None)
        await gate.reached.wait()
    assert fiber.state == moment
    wish = fiber.dispose()
    gate.go.set()
    await wish
    assert (fiber.state, left_over(root)) == (State.DISPOSED, {})


async def test_disposing_before_the_first_turn_never_applies(root: Context) -> None:
    log = Log()
    fiber = root.plugin(log.plugin("a"))
    await fiber.dispose()
    assert (log, fiber.state) == ([], State.DISPOSED)


async def test_disposing_twice_is_the_same_as_once(root: Context) -> None:
    log = Log()
    fiber = root.plugin(log.plugin("a"))
    await fiber.wait()
    await fiber.dispose()
    await fiber.dispose()
    assert log == ["+a", "-a"]


async def test_disposal_asked_for_happens_without_being_awaited(root: Context) -> None:
    fiber = root.plugin(Plugin("a"))
    await fiber.wait()
    fiber.dispose()
    await settled(root)
    assert fiber.state is State.DISPOSED


async def test_a_fiber_that_waits_for_its_own_disposal_gets_an_error_instead_of_a_deadlock(root: Context) -> None:
    caught: list[str] = []

    async def task(ctx: Context) -> None:
        try:
            await ctx.fiber.dispose()
        except DeadlockError as error:
            caught.append(str(error))

    fiber = root.plugin(Plugin("a", lambda ctx: ctx.start_soon(task, ctx)))
    await fiber.wait()
    await trio.testing.wait_all_tasks_blocked()
    assert len(caught) == 1 and "ask for it without awaiting" in caught[0] and fiber.state is State.DISPOSED


async def test_a_child_that_waits_for_its_parents_disposal_gets_an_error_instead_of_a_deadlock(root: Context) -> None:
    caught: list[BaseException] = []

    async def child(ctx: Context) -> None:
        assert ctx.fiber.parent is not None
        try:
            await ctx.fiber.parent.dispose()
        except DeadlockError as error:
            caught.append(error)

    root.plugin(Plugin("parent", lambda ctx: ctx.plugin(child) and None))
    await settled(root)
    assert len(caught) == 1


async def test_a_plugin_that_waits_for_the_roots_disposal_gets_an_error(root: Context) -> None:
    async def apply(ctx: Context) -> None:
        await ctx.root.fiber.dispose()

    fiber = root.plugin(apply)
    await settled(root)
    assert isinstance(fiber.error, DeadlockError) or fiber.state is State.DISPOSED


async def test_a_fiber_may_ask_for_its_own_disposal_without_waiting(root: Context) -> None:
    log = Log()
    fiber = root.plugin(log.plugin("a", lambda ctx: ctx.fiber.dispose() and None))
    await settled(root)
    assert (fiber.state, log) == (State.DISPOSED, ["+a", "-a"])


async def test_a_fiber_may_ask_for_its_own_disposal_from_inside_an_effect(root: Context) -> None:
    log = Log()

    def apply(ctx: Context) -> None:
        def setup() -> Any:
            ctx.fiber.dispose()
            return lambda: log.append("undone")

        ctx.effect(setup)

    fiber = root.plugin(apply)
    await settled(root)
    assert (fiber.state, log) == (State.DISPOSED, ["undone"])


async def test_an_update_restarts_with_the_new_config(root: Context) -> None:
    log = Log()
    fiber = root.plugin(Plugin("a", lambda ctx, config: log.append(config)), "one")
    await fiber.wait()
    await fiber.update("two")
    assert log == ["one", "two"]


async def test_of_several_updates_the_latest_wins(root: Context) -> None:
    log = Log()
    fiber = root.plugin(Plugin("a", lambda ctx, config: log.append(config)), "one")
    await fiber.wait()
    for config in ("two", "three", "four"):
        fiber.update(config)
    await settled(root)
    assert log == ["one", "four"]


async def test_an_update_while_loading_cancels_the_apply_and_starts_afresh(root: Context) -> None:
    log = Log()
    gate = Gate()

    async def apply(ctx: Context, config: str) -> None:
        log.append(f"+{config}")
        ctx.effect(lambda: lambda: log.append(f"-{config}"))
        if config == "one":
            await gate.stop()

    fiber = root.plugin(Plugin("a", apply), "one")
    await gate.reached.wait()
    await fiber.update("two")
    assert (log, fiber.state) == (["+one", "-one", "+two"], State.ACTIVE)


async def test_an_update_while_unloading_applies_with_the_latest_config(root: Context) -> None:
    log = Log()
    gate = Gate()

    def apply(ctx: Context, config: str) -> None:
        log.append(config)
        if config == "one":
            ctx.effect(lambda: gate.stop)

    fiber = root.plugin(Plugin("a", apply), "one")
    await fiber.wait()
    fiber.update("two")
    await gate.reached.wait()
    fiber.update("three")
    gate.go.set()
    await settled(root)
    assert (log, fiber.state) == (["one", "three"], State.ACTIVE)


async def test_an_update_of_a_pending_fiber_is_what_it_is_applied_with(root: Context) -> None:
    log = Log()
    fiber = root.plugin(Plugin("a", lambda ctx, config: log.append(config), ["x"]), "one")
    await settled(root)
    await fiber.update("two")
    assert fiber.state is State.PENDING
    root.provide("x", 1)
    await settled(root)
    assert log == ["two"]


async def test_an_update_at_the_moment_of_the_turn_is_not_lost(root: Context) -> None:
    log = Log()

    def update(fiber: Fiber, previous: str) -> None:
        if fiber.state == "loading" and fiber.config == "one":
            fiber.update("two")

    root.on("plugin/state", update)
    root.plugin(Plugin("a", lambda ctx, config: log.append(config)), "one")
    await settled(root)
    assert log[-1] == "two"


async def test_disposing_while_updating_disposes(root: Context) -> None:
    gate = Gate()
    fiber = root.plugin(Plugin("a", lambda ctx: ctx.effect(lambda: gate.stop) and None))
    await fiber.wait()
    fiber.update(None)
    await gate.reached.wait()
    fiber.dispose()
    gate.go.set()
    await settled(root)
    assert fiber.state is State.DISPOSED


async def test_disposal_is_final_an_update_after_it_raises(root: Context) -> None:
    fiber = root.plugin(Plugin("a"))
    await fiber.wait()
    await fiber.dispose()
    with pytest.raises(DisposedError, match=r"plugin 'a' is updated, but has been disposed; mount it again"):
        fiber.update(None)


async def test_an_updated_plugin_keeps_its_children_order_and_restarts_them(root: Context) -> None:
    log = Log()
    fiber = root.plugin(log.plugin("p", lambda ctx: ctx.plugin(log.plugin("c")) and None))
    await settled(root)
    log.clear()
    await fiber.update(None)
    await settled(root)
    assert log == ["-c", "-p", "+p", "+c"]


async def test_a_crash_in_a_background_task_fails_that_fiber_alone(root: Context) -> None:
    async def crash() -> None:
        raise ValueError("crash")

    other = root.plugin(Plugin("other"))
    fiber = root.plugin(Plugin("a", lambda ctx: ctx.start_soon(crash)))
    await settled(root)
    await trio.testing.wait_all_tasks_blocked()
    assert (fiber.state, str(fiber.error), other.state) == (State.FAILED, "crash", State.ACTIVE)


async def test_a_crash_undoes_what_the_fiber_had_registered(root: Context) -> None:
    log = Log()
    gate = Gate()

    async def crash() -> None:
        await gate.stop()
        raise ValueError("crash")

    root.plugin(log.plugin("a", lambda ctx: ctx.start_soon(crash)))
    await settled(root)
    gate.go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert log == ["+a", "-a"]


async def test_a_crash_in_a_scopes_task_fails_the_fiber_that_opened_the_scope(root: Context) -> None:
    async def crash() -> None:
        raise ValueError("crash")

    fiber = root.plugin(Plugin("a", lambda ctx: ctx.scope("s").ctx.start_soon(crash)))
    await trio.testing.wait_all_tasks_blocked()
    assert (fiber.state, left_over(root).get("scopes")) == (State.FAILED, None)


async def test_a_crash_while_unloading_for_an_update_does_not_fail_the_next_life(root: Context) -> None:
    async def crash() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise ValueError("cleaning up failed") from None

    fiber = root.plugin(Plugin("a", lambda ctx, config: ctx.start_soon(crash) if config else None), True)
    await settled(root)
    await fiber.update(False)
    assert fiber.state is State.ACTIVE


async def test_a_crash_of_a_task_of_the_root_comes_out_where_the_host_is_open() -> None:
    from dsh_runtime.core.kernel import open_kernel

    async def crash() -> None:
        raise ValueError("crash")

    with pytest.raises(ValueError, match="crash"):
        async with open_kernel() as root:
            root.start_soon(crash)
            await trio.sleep_forever()


async def test_a_finished_background_task_leaves_no_step(root: Context) -> None:
    async def short() -> None:
        await trio.lowlevel.checkpoint()

    fiber = root.plugin(Plugin("a"))
    await fiber.wait()
    for _ in range(10):
        fiber.ctx.start_soon(short)
    await trio.testing.wait_all_tasks_blocked()
    assert not fiber.stack.steps


async def test_disposing_the_root_leaves_a_root_that_can_be_used_again(root: Context) -> None:
    log = Log()
    root.plugin(log.plugin("a"))
    await settled(root)
    await root.fiber.dispose()
    assert left_over(root) == {}
    root.provide("x", 1)
    root.plugin(log.plugin("b", inject=["x"]))
    await settled(root)
    assert log == ["+a", "-a", "+b"]


async def test_disposing_the_root_many_times_leaves_a_root_that_can_be_used_again(root: Context) -> None:
    log = Log()
    for _ in range(5):
        root.plugin(log.plugin("a"))
        await settled(root)
        await root.fiber.dispose()
    assert log == ["+a", "-a"] * 5


async def test_wishes_of_all_kinds_at_once_end_in_the_last(root: Context) -> None:
    fiber = root.plugin(Plugin("a", lambda ctx, config: None, ["x"]), 0)
    owner = root.plugin(provider("p", "x"))
    await settled(root)
    for n in range(20):
        fiber.update(n)
        owner.update(None)
        fiber.restart()
    await settled(root)
    assert (fiber.state, owner.state, fiber.settings) == (State.ACTIVE, State.ACTIVE, 19)
