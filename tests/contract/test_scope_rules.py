"""Contract 2.4, 2.7, 3.6: scopes - their tree, who ends them, and what ends with them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import trio
import trio.testing
from core_kit import Gate, Log, Plugin, Specs, left_over, settled

from dsh_runtime import Context, DisposedError, ScopeClosedError, ScopeError, ScopeKey, State


@pytest.fixture
def heard(root: Context) -> Log:
    """A log, on a root that has declared the tests' events."""
    root.add_hookspecs(Specs)
    return Log()


def listen(ctx: Context, log: Log, name: str) -> Any:
    return ctx.on("demo/seen", lambda what: log.append(name))


async def test_a_scopes_context_registers_for_the_scope(root: Context) -> None:
    assert root.scope("s").ctx.scope_key == "s"


async def test_a_scope_without_a_key_gets_one_that_equals_nothing_else(root: Context) -> None:
    one, two = root.scope(), root.scope()
    assert isinstance(one.key, ScopeKey) and one.key != two.key


async def test_an_unscoped_listener_hears_everything(root: Context, heard: Log) -> None:
    listen(root, heard, "root")
    scope = root.scope("s")
    root.emit("demo/seen", "x", 1)
    root.emit("demo/seen", "x", 1, scope=scope.key)
    assert heard == ["root", "root"]


async def test_a_scoped_listener_hears_its_scope_and_those_below_never_above_or_beside(
    root: Context, heard: Log
) -> None:
    above = root.scope("above")
    scope = root.scope("scope", parent="above")
    below = root.scope("below", parent="scope")
    beside = root.scope("beside", parent="above")
    listen(scope.ctx, heard, "listener")
    for key in (None, above.key, beside.key):
        root.emit("demo/seen", "x", 1, scope=key)
    assert heard == []
    for key in (scope.key, below.key):
        root.emit("demo/seen", "x", 1, scope=key)
    assert heard == ["listener", "listener"]


async def test_an_event_that_is_not_filtered_is_heard_through_a_scope_too(root: Context, heard: Log) -> None:
    root.scope("s").ctx.on("demo/global", lambda: heard.append("scoped"))
    root.emit("demo/global")
    assert heard == ["scoped"]


async def test_a_scoped_plugins_hookimpls_hear_its_scope_alone(root: Context, heard: Log) -> None:
    from dsh_runtime import hookimpl

    class Carrier:
        @hookimpl
        def demo_seen(self, what: str) -> None:
            heard.append(what)

    scope = root.scope("s")
    await scope.ctx.plugin(Carrier()).wait()
    root.emit("demo/seen", "outside", 1)
    root.emit("demo/seen", "inside", 1, scope="s")
    assert heard == ["inside"]


async def test_children_inherit_the_scope_of_the_context_they_are_mounted_on(root: Context) -> None:
    found: list[Any] = []
    root.scope("s").ctx.plugin(lambda ctx: ctx.plugin(lambda ctx: found.append(ctx.scope_key)) and None)
    await settled(root)
    assert found == ["s"]


async def test_children_mounted_on_a_scope_end_with_it(root: Context) -> None:
    log = Log()
    scope = root.scope("s")
    child = scope.ctx.plugin(log.plugin("c"))
    await settled(root)
    await scope.dispose()
    assert (log, child.state, left_over(root)) == (["+c", "-c"], State.DISPOSED, {})


async def test_a_key_is_bound_to_a_parent_once(root: Context) -> None:
    root.scope("a"), root.scope("b")
    root.scope("s", parent="a")
    with pytest.raises(
        ScopeError, match="bound to the parent 'a' and cannot be bound to 'b'; a scope keeps its parent"
    ):
        root.scope("s", parent="b")


async def test_a_refused_scope_leaves_nothing(root: Context) -> None:
    root.scope("s", parent="a")
    with pytest.raises(ScopeError):
        root.scope("s", parent="b")
    root.scope("s").dispose()
    assert len(root.stack.steps) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 10])
async def test_circles_of_scopes_are_refused(root: Context, size: int) -> None:
    for n in range(size - 1):
        root.scope(n, parent=n + 1)
    with pytest.raises(ScopeError, match="scopes form a tree"):
        root.scope(size - 1, parent=0)


async def test_dispatching_for_a_scope_that_has_been_disposed_is_refused(root: Context, heard: Log) -> None:
    root.scope("s").dispose()
    with pytest.raises(ScopeClosedError, match="scope 's' has been disposed; open a new one") as caught:
        root.emit("demo/seen", "x", 1, scope="s")
    assert caught.value.code == "SCOPE_CLOSED"


async def test_dispatching_below_a_scope_that_has_been_disposed_is_refused(root: Context, heard: Log) -> None:
    parent = root.scope("parent")
    root.scope("child", parent="parent")
    parent.dispose()
    with pytest.raises(ScopeClosedError):
        root.emit("demo/seen", "x", 1, scope="child")


async def test_a_scope_below_stays_closed_when_the_key_above_is_opened_again(root: Context, heard: Log) -> None:
    """Else a call for it would run without the guards that the old parent had."""
    parent = root.scope("parent")
    root.scope("child", parent="parent")
    parent.dispose()
    root.scope("parent")
    with pytest.raises(ScopeClosedError):
        root.emit("demo/seen", "x", 1, scope="child")


async def test_nothing_can_be_opened_below_a_scope_that_has_been_disposed(root: Context) -> None:
    root.scope("parent").dispose()
    with pytest.raises(ScopeClosedError, match="nothing can stand below it"):
        root.scope("child", parent="parent")


async def test_registering_through_a_scope_that_has_been_disposed_raises(root: Context) -> None:
    scope = root.scope("s")
    scope.dispose()
    with pytest.raises(DisposedError, match="scope 's' of plugin 'root'"):
        scope.ctx.provide("x", 1)


async def test_a_disposed_key_can_be_opened_again_and_begins_empty(root: Context, heard: Log) -> None:
    scope = root.scope("s")
    listen(scope.ctx, heard, "old")
    scope.dispose()
    listen(root.scope("s").ctx, heard, "new")
    root.emit("demo/seen", "x", 1, scope="s")
    assert heard == ["new"]


async def test_a_key_opened_again_under_another_parent_hears_with_the_new_one(root: Context, heard: Log) -> None:
    for name in "ab":
        listen(root.scope(name).ctx, heard, name)
    first = root.scope("s", parent="a")
    root.emit("demo/seen", "x", 1, scope="s")
    first.dispose()
    root.scope("s", parent="b")
    root.emit("demo/seen", "x", 1, scope="s")
    assert heard == ["a", "b"]


async def test_a_key_opened_again_while_the_old_one_unwinds_begins_empty(root: Context, heard: Log) -> None:
    gate = Gate()
    scope = root.scope("s")
    listen(scope.ctx, heard, "old")
    scope.ctx.register("table", 1, key="k")
    scope.ctx.effect(lambda: gate.stop)
    scope.dispose()
    new = root.scope("s")
    new.ctx.register("table", 2, key="k")
    root.emit("demo/seen", "x", 1, scope="s")
    gate.go.set()
    await scope.dispose()
    found = root.fiber.kernel.ledger.find("table", "s", "k")
    assert heard == [] and found is not None and found.value == 2


async def test_disposing_an_old_handle_again_leaves_the_new_scope_alone(root: Context, heard: Log) -> None:
    old = root.scope("s")
    await old.dispose()
    root.scope("s")
    await old.dispose()
    root.emit("demo/seen", "x", 1, scope="s")


async def test_disposing_a_scope_undoes_what_was_registered_for_it_last_first(root: Context) -> None:
    log = Log()
    scope = root.scope("s")
    for name in "abc":
        scope.ctx.effect(lambda name=name: lambda: log.append(name))
    scope.dispose()
    assert log == ["c", "b", "a"]


async def test_disposing_a_scope_twice_is_the_same_as_once(root: Context) -> None:
    log = Log()
    scope = root.scope("s")
    scope.ctx.effect(lambda: lambda: log.append("x"))
    await scope.dispose()
    await scope.dispose()
    assert log == ["x"]


async def test_a_scope_ends_with_its_plugin(root: Context, heard: Log) -> None:
    fiber = root.plugin(Plugin("a", lambda ctx: ctx.scope("s") and None))
    await fiber.wait()
    await fiber.dispose()
    with pytest.raises(ScopeClosedError):
        root.emit("demo/seen", "x", 1, scope="s")


async def test_a_scope_with_the_tasks_it_started_rests_before_its_disposal_returns(root: Context) -> None:
    log = Log()

    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            log.append("rested")

    scope = root.scope("s")
    scope.ctx.start_soon(task)
    await trio.testing.wait_all_tasks_blocked()
    await scope.dispose()
    assert log == ["rested"]


async def test_a_scope_can_be_disposed_from_within_its_own_task_without_a_deadlock(root: Context) -> None:
    scope = root.scope("s")
    scope.ctx.start_soon(lambda: _await(scope.dispose()))
    await trio.testing.wait_all_tasks_blocked()
    assert left_over(root) == {}


async def _await(ending: Any) -> None:
    await ending


async def test_a_scope_can_be_disposed_from_within_a_dispatch_for_it(root: Context, heard: Log) -> None:
    scope = root.scope("s")
    scope.ctx.on("demo/seen", lambda what: scope.dispose() and None)
    listen(scope.ctx, heard, "behind")
    root.emit("demo/seen", "x", 1, scope="s")
    assert heard == ["behind"], "a dispatch runs its list as it was when it began"
    with pytest.raises(ScopeClosedError):
        root.emit("demo/seen", "x", 1, scope="s")


async def test_a_scope_disposed_from_inside_its_own_effect_undoes_that_effect(root: Context) -> None:
    log = Log()
    scope = root.scope("s")

    def setup() -> Any:
        scope.dispose()
        return lambda: log.append("undone")

    with pytest.raises(DisposedError):
        scope.ctx.effect(setup)
    assert (log, left_over(root)) == (["undone"], {})


async def test_failures_in_a_scopes_undo_come_out_of_its_disposal(root: Context) -> None:
    def broken() -> None:
        raise ValueError("broken")

    scope = root.scope("s")
    scope.ctx.effect(lambda: broken)
    with pytest.raises(ValueError, match="broken"):
        await scope.dispose()


async def test_a_scopes_undo_that_never_ends_has_a_deadline(
    root: Context, autojump_clock: trio.testing.MockClock
) -> None:
    from dsh_runtime.core.errors import TeardownTimeoutError

    scope = root.scope("s")
    scope.ctx.effect(lambda: trio.sleep_forever)
    with pytest.raises(TeardownTimeoutError):
        await scope.dispose()


async def test_a_plugin_that_unloads_waits_for_its_scope_that_is_still_unwinding(root: Context) -> None:
    log = Log()
    gate = Gate()

    async def undo() -> None:
        await gate.stop()
        log.append("scope")

    def apply(ctx: Context) -> None:
        ctx.effect(lambda: lambda: log.append("plugin"))
        scope = ctx.scope("s")
        scope.ctx.effect(lambda: undo)
        scope.dispose()

    fiber = root.plugin(apply)
    await fiber.wait()
    await gate.reached.wait()
    wish = fiber.dispose()
    await trio.testing.wait_all_tasks_blocked()
    gate.go.set()
    await wish
    assert log == ["scope", "plugin"]


# Scopes joined by several plugins.


async def test_a_second_handle_joins_the_scope(root: Context, heard: Log) -> None:
    root.scope("s", parent="p")
    guest = root.plugin(Plugin("guest", lambda ctx: listen(ctx.scope("s").ctx, heard, "guest")))
    await guest.wait()
    root.emit("demo/seen", "x", 1, scope="s")
    assert heard == ["guest"]


async def test_a_guest_takes_only_its_own_registrations_away(root: Context, heard: Log) -> None:
    owner = root.scope("s")
    listen(owner.ctx, heard, "owner")
    guest = root.plugin(Plugin("guest", lambda ctx: listen(ctx.scope("s").ctx, heard, "guest")))
    await guest.wait()
    await guest.dispose()
    root.emit("demo/seen", "x", 1, scope="s")
    assert heard == ["owner"]


async def test_when_the_owner_ends_the_scope_it_ends_for_its_guests(root: Context, heard: Log) -> None:
    owner = root.scope("s")
    handles: list[Any] = []

    def apply(ctx: Context) -> None:
        handles.append(ctx.scope("s"))
        handles[0].ctx.effect(lambda: lambda: heard.append("guest's undo"))

    guest = root.plugin(Plugin("guest", apply))
    await guest.wait()
    await owner.dispose()
    assert heard == ["guest's undo"] and guest.state is State.ACTIVE
    with pytest.raises(DisposedError):
        handles[0].ctx.on("demo/seen", lambda what: None)


async def test_a_guest_of_many_scopes_that_have_ended_keeps_no_trace_of_them(root: Context) -> None:
    guest = root.plugin(Plugin("guest"))
    await guest.wait()
    for n in range(100):
        owner = root.scope(n)
        guest.ctx.scope(n).ctx.register("table", n)
        await owner.dispose()
    assert not guest.stack.steps and not guest.entries


async def test_scopes_below_end_with_their_parent_deepest_first(root: Context) -> None:
    log = Log()
    for name, parent in (("a", None), ("b", "a"), ("c", "b")):
        scope = root.scope(name, parent=parent)
        scope.ctx.effect(lambda name=name: lambda: log.append(name))
        if name == "a":
            top = scope
    await top.dispose()
    assert (log, left_over(root)) == (["c", "b", "a"], {})


async def test_a_scope_waits_for_those_below_before_it_undoes_its_own(root: Context) -> None:
    log = Log()
    gate = Gate()

    async def slow() -> None:
        await gate.stop()
        log.append("below")

    top = root.scope("top")
    top.ctx.effect(lambda: lambda: log.append("top"))
    root.scope("below", parent="top").ctx.effect(lambda: slow)
    ending = top.dispose()
    await gate.reached.wait()
    assert log == []
    gate.go.set()
    await ending
    assert log == ["below", "top"]


async def test_watchers_hear_of_every_scope_that_ends(root: Context) -> None:
    ended: list[Any] = []
    root.fiber.kernel.watch_scopes(ended.append)
    top = root.scope("top")
    root.scope("below", parent="top")
    top.dispose()
    assert ended == ["below", "top"]


async def test_a_scope_that_has_ended_leaves_no_trace(root: Context, heard: Log) -> None:
    listen(root, heard, "root")
    scope = root.scope()
    key = scope.key
    root.emit("demo/seen", "x", 1, scope=key)
    trace = weakref.ref(key)
    await scope.dispose()
    del scope, key
    gc.collect()
    assert trace() is None


async def test_a_call_for_a_disposed_scope_is_refused_with_its_code() -> None:
    from dsh_runtime import AbortController, ToolExecutionFailure, ToolExecutionInput, open_host

    async with open_host() as host:
        scope = host.ctx.scope("s")
        scope.dispose()
        call = ToolExecutionInput(call_id="1", name="echo", arguments={}, signal=AbortController().signal, agent="s")
        result = await host.ctx.tools.execute(call)
        assert isinstance(result, ToolExecutionFailure)
        assert result.error.info is not None and result.error.info.code == "SCOPE_CLOSED"
