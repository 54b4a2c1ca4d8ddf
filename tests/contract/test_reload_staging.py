"""Staging in the core: what is applied aside is unseen until it is committed, and leaves nothing if it is not."""

from __future__ import annotations

import contextvars
import gc
import weakref
from typing import Any

import pytest
import trio
import trio.testing
from core_kit import Gate, Log, Plugin, left_over, provider, settled, states, stubborn

from dsh_runtime import ClashError, Context, DisposedError, Fiber, HookError, ScopeClosedError, State, hookspec
from dsh_runtime.core.plugins import read_plugin
from dsh_runtime.core.staging import Stage

word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="none")


def stage(root: Context) -> Stage:
    """A stage beside what is in force."""
    return Stage(root.fiber.kernel)


def add(stage: Stage, root: Context, plugin: Any, instead_of: Fiber | None = None) -> Fiber:
    """Apply a plugin aside, instead of one in force."""
    path = instead_of.path if instead_of is not None else (root.fiber.next_seq(),)
    return stage.add(root, read_plugin(plugin), None, fiber_id=plugin.name, path=path, instead_of=instead_of)


async def swap(root: Context, plugin: Any, old: Fiber) -> Fiber:
    """Put a new version in the place of an old one."""
    new_stage = stage(root)
    new = add(new_stage, root, plugin, old)
    await new_stage.settle()
    new_stage.commit()
    await rest(root)
    return new


async def rest(root: Context) -> None:
    """Wait until what has been replaced is gone."""
    kernel = root.fiber.kernel
    while kernel.retired.fibers:
        await kernel.next_change()


async def test_what_is_staged_is_unseen_until_it_is_committed(root: Context) -> None:
    def apply(ctx: Context) -> None:
        ctx.provide("thing", ctx.fiber)
        ctx.register("table", ctx.fiber, key="key")

    old = root.plugin(Plugin("p", apply))
    await settled(root)
    beside = stage(root)
    new = add(beside, root, Plugin("p", apply), old)
    await beside.settle()
    ledger = root.fiber.ledger
    assert states(old, new) == [State.ACTIVE, State.ACTIVE]
    assert root.get("thing") is old and ledger.find("table", None, "key").value is old  # type: ignore[union-attr]
    assert new not in root.fiber.children and new not in root.fiber.kernel.fibers
    beside.commit()
    assert root.get("thing") is new and ledger.find("table", None, "key").value is new  # type: ignore[union-attr]
    assert list(root.fiber.children) == [new] and list(root.fiber.kernel.fibers) == [new]
    await rest(root)
    assert states(old, new) == [State.DISPOSED, State.ACTIVE]


async def test_a_clash_with_somebody_else_is_raised_where_it_is_made(root: Context) -> None:
    root.register("table", 1, key="taken")
    old = root.plugin(Plugin("p"))
    beside = stage(root)
    new = add(beside, root, Plugin("p", lambda ctx: ctx.register("table", 2, key="taken")), old)
    await beside.settle()
    assert new.state is State.FAILED and isinstance(new.error, ClashError) and "'root' has registered" in str(new.error)
    await beside.rollback()


async def test_a_clash_that_came_up_meanwhile_refuses_the_commit_and_changes_nothing(root: Context) -> None:
    old = root.plugin(Plugin("p", lambda ctx: ctx.register("table", 1, key="mine")))
    await settled(root)
    beside = stage(root)
    add(beside, root, Plugin("p", lambda ctx: ctx.register("table", 2, key="free")), old)
    await beside.settle()
    root.register("table", 3, key="free")
    with pytest.raises(ClashError, match="'p' registers table 'free', which plugin 'root'"):
        beside.commit()
    await beside.rollback()
    ledger = root.fiber.ledger
    assert ledger.find("table", None, "mine").fiber is old and old.state is State.ACTIVE  # type: ignore[union-attr]
    assert ledger.find("table", None, "free").value == 3  # type: ignore[union-attr]


class Specs:
    @staticmethod
    @hookspec(mode="emit")
    def p_said(word: str) -> None: ...


def everything(ctx: Context) -> None:
    """Registers one of everything."""
    ctx.add_hookspecs(Specs)
    ctx.on("p/said", lambda word: None)
    ctx.provide("thing", 1)
    ctx.register("table", 1, key="key")
    ctx.plugin(Plugin("child", lambda ctx: ctx.register("table", 2, key="child")))
    inner = ctx.scope("inner", parent="outer")
    inner.ctx.register("table", 3)
    ctx.scope("shared").ctx.register("table", 4)
    ctx.start_soon(trio.sleep_forever)
    ctx.effect(lambda: lambda: None)


def picture(root: Context) -> dict[str, Any]:
    """What a kernel holds."""
    kernel = root.fiber.kernel
    found = left_over(root)
    return found | {
        "fibers": [fiber.id for fiber in found["fibers"]],
        "children": [fiber.id for fiber in found["children"]],
        "events": kernel.events.names(),
        "closed": len(kernel.scopes._closed) + len(kernel.scopes._closed_weak),
        "guests": {key: len(owner.guests) for key, owner in kernel.scopes._owners.items()},
        "users": {name: len(users) for name, users in kernel._users.items()},
        "retired": list(kernel.retired.fibers),
    }


@pytest.mark.parametrize("how", ["rolled back", "failed", "committed"])
async def test_a_stage_leaves_nothing_but_what_was_committed(how: str, root: Context) -> None:
    def failing(ctx: Context) -> None:
        everything(ctx)
        raise ValueError

    root.scope("outer")
    root.scope("shared")
    old = root.plugin(Plugin("p", everything))
    await settled(root)
    before = picture(root)
    beside = stage(root)
    new = add(beside, root, Plugin("p", failing if how == "failed" else everything), old)
    await beside.settle()
    if how == "committed":
        beside.commit()
        await rest(root)
        now = picture(root)
        for name in ("tasks", "entries"):
            now[name], before[name] = sorted(map(str, now[name])), sorted(map(str, before[name]))
        assert now == before
        await new.dispose()
    else:
        await beside.rollback()
        await trio.testing.wait_all_tasks_blocked()
        assert picture(root) == before
        await old.dispose()
    assert "p/said" not in root.fiber.kernel.events.names() and root.get("thing") is None


async def test_nothing_keeps_a_replaced_fiber_alive(root: Context) -> None:
    old = root.plugin(Plugin("p", everything))
    await settled(root)
    refs = []
    for _ in range(20):
        new = await swap(root, Plugin("p", everything), old)
        refs.append(weakref.ref(old))
        old = new
    del new
    await trio.testing.wait_all_tasks_blocked()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 20


async def test_tasks_begin_at_the_commit_with_the_variables_that_they_were_started_with(root: Context) -> None:
    log = Log()

    def apply(ctx: Context) -> None:
        async def task() -> None:
            log.append(word.get())

        word.set("new")
        ctx.start_soon(task)

    old = root.plugin(Plugin("p"))
    beside = stage(root)
    add(beside, root, Plugin("p", apply), old)
    await beside.settle()
    await trio.testing.wait_all_tasks_blocked()
    assert log == []
    word.set("reloader")
    beside.commit()
    await trio.testing.wait_all_tasks_blocked()
    assert log == ["new"]


async def test_a_task_whose_plugin_is_rolled_back_never_begins_and_holds_nothing_up(root: Context) -> None:
    log = Log()

    async def task() -> None:
        log.append("ran")

    beside = stage(root)
    add(beside, root, Plugin("p", lambda ctx: ctx.start_soon(task)))
    await beside.settle()
    await beside.rollback()
    await trio.testing.wait_all_tasks_blocked()
    assert log == [] and not left_over(root)


async def test_consumers_in_a_stage_get_the_staged_provider_whatever_their_order(root: Context) -> None:
    log = Log()
    user = Plugin("user", lambda ctx: log.append(ctx.thing), inject=["thing"])
    olds = [root.plugin(user), root.plugin(provider("maker", "thing", "old"))]
    await settled(root)
    beside = stage(root)
    add(beside, root, user, olds[0])
    add(beside, root, provider("maker", "thing", "new"), olds[1])
    await beside.settle()
    assert log == ["old", "new"] and beside.affected() == []
    beside.commit()
    await settled(root)
    await rest(root)
    assert log == ["old", "new"]


async def test_affected_are_those_who_would_have_to_restart(root: Context) -> None:
    maker = root.plugin(provider("maker", "thing"))
    required = root.plugin(Plugin("required", inject=["thing"]))
    optional = root.plugin(Plugin("optional", inject={"thing": False}))
    waiting = root.plugin(Plugin("waiting", inject={"other": False}))
    root.plugin(Plugin("stranger", inject={"third": False}))
    await settled(root)
    beside = stage(root)
    add(beside, root, Plugin("maker", lambda ctx: ctx.provide("other", 1)), maker)
    await beside.settle()
    assert beside.affected() == [required, optional, waiting]
    await beside.rollback()


async def test_a_scope_that_the_new_version_opens_too_goes_over_to_it_with_its_guests(root: Context) -> None:
    def apply(ctx: Context) -> None:
        ctx.scope("agent").ctx.register("table", ctx.fiber)

    old = root.plugin(Plugin("p", apply))
    await settled(root)
    guest = root.scope("agent")
    guest.ctx.register("table", "guest's")
    root.scope("below", parent="agent")
    new = await swap(root, Plugin("p", apply), old)
    entries = root.fiber.ledger.resolve("table", ("agent",))
    assert {entry.value for entry in entries} == {new, "guest's"}
    assert root.fiber.kernel.scopes.chain("below") == ("below", "agent")
    owner = root.fiber.kernel.scopes.owner("agent")
    assert owner is not None and owner.fiber is new and list(owner.guests) == [guest]
    await guest.dispose()
    assert not owner.guests and root.fiber.kernel.scopes.is_open("agent")
    await new.dispose()
    for key in ("agent", "below"):
        with pytest.raises(ScopeClosedError):
            root.fiber.kernel.scopes.chain(key)
    assert root.fiber.ledger.resolve("table", ("agent",)) == ()


async def test_a_scope_that_the_new_version_does_not_open_ends_with_the_old_one(root: Context) -> None:
    old = root.plugin(Plugin("p", lambda ctx: ctx.scope("agent") and None))
    await settled(root)
    await swap(root, Plugin("p"), old)
    with pytest.raises(ScopeClosedError):
        root.fiber.kernel.scopes.chain("agent")


async def test_a_scope_can_stand_below_another_one_in_the_new_version(root: Context) -> None:
    for key in ("one", "two"):
        root.scope(key)
    old = root.plugin(Plugin("p", lambda ctx: ctx.scope("agent", parent="one") and None))
    await settled(root)
    await swap(root, Plugin("p", lambda ctx: ctx.scope("agent", parent="two") and None), old)
    assert root.fiber.kernel.scopes.chain("agent") == ("agent", "two")


async def test_a_staged_scope_that_is_rolled_back_was_never_there(root: Context) -> None:
    beside = stage(root)
    add(beside, root, Plugin("p", lambda ctx: ctx.scope("agent") and None))
    await beside.settle()
    assert not root.fiber.kernel.scopes.is_open("agent")
    await beside.rollback()
    assert root.fiber.kernel.scopes.chain("agent") == ("agent",), "it has not been closed, since it was never open"


async def test_scopes_that_others_open_meanwhile_are_joined(root: Context) -> None:
    beside = stage(root)
    new = add(beside, root, Plugin("p", lambda ctx: ctx.scope("agent").ctx.register("table", 1) and None))
    await beside.settle()
    owner = root.scope("agent")
    beside.commit()
    await new.dispose()
    assert root.fiber.kernel.scopes.is_open("agent") and root.fiber.ledger.resolve("table", ("agent",)) == ()
    await owner.dispose()


async def test_an_event_of_the_old_version_is_declared_anew_and_one_that_is_gone_is_gone(root: Context) -> None:
    heard: list[str] = []
    old = root.plugin(Plugin("p", lambda ctx: ctx.add_hookspecs(Specs) and None))
    await settled(root)
    listener = root.plugin(Plugin("hears", lambda ctx: ctx.on("p/said", lambda word: heard.append(word)) and None))
    await settled(root)
    beside = stage(root)
    new = add(beside, root, Plugin("p", lambda ctx: ctx.add_hookspecs(Specs) and None), old)
    await beside.settle()
    assert beside.affected() == [listener]
    add(beside, root, Plugin("hears", lambda ctx: ctx.on("p/said", lambda word: heard.append(word)) and None), listener)
    await beside.settle()
    beside.commit()
    await rest(root)
    root.emit("p/said", "one")
    assert heard == ["one"]
    await new.dispose()
    with pytest.raises(HookError, match="which no hookspec declares"):
        root.emit("p/said", "two")


async def test_what_is_moved_sorts_anew_without_being_applied_again(root: Context) -> None:
    log = Log()
    fibers = [root.plugin(log.plugin(name, lambda ctx: ctx.register("table", ctx.fiber.id) and None)) for name in "abc"]
    await settled(root)
    log.take()
    beside = stage(root)
    for fiber, path in zip(fibers, [(9,), (8,), (7,)], strict=True):
        beside.move(fiber, path)
    beside.commit()
    assert [entry.value for entry in root.fiber.ledger.resolve("table", (None,))] == ["c", "b", "a"]
    assert log == [] and all(fiber.state is State.ACTIVE for fiber in fibers)


async def test_what_is_removed_goes_with_the_commit_and_is_there_before(root: Context) -> None:
    old = root.plugin(provider("maker", "thing"))
    await settled(root)
    beside = stage(root)
    beside.remove(old)
    await beside.settle()
    assert root.get("thing") == "value"
    beside.commit()
    assert root.get("thing") is None
    await rest(root)
    await trio.testing.wait_all_tasks_blocked()
    assert not left_over(root)


async def test_a_staged_fiber_that_hangs_keeps_nobody_in_force_waiting(root: Context) -> None:
    async def hang(ctx: Context) -> None:
        await trio.sleep_forever()

    beside = stage(root)
    add(beside, root, Plugin("hangs", hang))
    with trio.move_on_after(0.01):
        await beside.settle()
    fiber = root.plugin(Plugin("other"))
    await fiber.wait()
    assert fiber.state is State.ACTIVE
    await beside.rollback()
    await fiber.dispose()
    assert not left_over(root)


async def test_an_apply_that_cannot_be_cancelled_is_left_behind_after_a_while_and_counts_for_nothing(
    root: Context, autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()

    async def apply(ctx: Context) -> None:
        await stubborn(gate)
        ctx.provide("thing", 1)

    beside = stage(root)
    add(beside, root, Plugin("stubborn", apply))
    await gate.reached.wait()
    await beside.rollback()
    assert "plugin 'stubborn' goes on with apply() although it is cancelled" in caplog.text
    gate.go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert root.get("thing") is None and not left_over(root)


async def test_nothing_is_committed_on_a_root_that_unwinds(root: Context) -> None:
    old = root.plugin(Plugin("p"))
    await settled(root)
    beside = stage(root)
    add(beside, root, Plugin("p"), old)
    await beside.settle()
    root.fiber.dispose()
    with pytest.raises(DisposedError):
        beside.commit()
    await beside.rollback()


async def test_a_provider_in_force_that_restarts_meanwhile_restarts_its_staged_consumer(root: Context) -> None:
    lives = iter(["first", "second"])
    maker = root.plugin(Plugin("maker", lambda ctx: ctx.provide("thing", next(lives))))
    await settled(root)
    log = Log()
    beside = stage(root)
    new = add(beside, root, Plugin("user", lambda ctx: log.append(ctx.thing), inject=["thing"]))
    await beside.settle()
    maker.restart()
    await settled(root)
    await beside.settle()
    assert log == ["first", "second"]
    beside.commit()
    assert new.state is State.ACTIVE and new.ctx.thing == "second"


async def test_a_provider_that_unloads_waits_for_a_consumer_that_has_been_replaced(root: Context) -> None:
    log = Log()
    gate = Gate()

    def old_user(ctx: Context) -> None:
        async def undo() -> None:
            await gate.stop()
            log.append(f"user still reads {ctx.thing}")

        ctx.effect(lambda: undo)

    maker = root.plugin(log.plugin("maker", lambda ctx: ctx.provide("thing", 1) and None))
    user = root.plugin(Plugin("user", old_user, inject=["thing"]))
    await settled(root)
    beside = stage(root)
    add(beside, root, Plugin("user"), user)
    await beside.settle()
    beside.commit()
    await gate.reached.wait()
    maker.dispose()
    await trio.testing.wait_all_tasks_blocked()
    gate.go.set()
    await rest(root)
    await settled(root)
    assert log == ["+maker", "user still reads 1", "-maker"]


async def test_a_service_in_force_that_is_provided_anew_meanwhile_restarts_its_staged_consumer(root: Context) -> None:
    root.provide("thing", "first")
    log = Log()
    beside = stage(root)
    add(beside, root, Plugin("user", lambda ctx: log.append(ctx.thing), inject=["thing"]))
    await beside.settle()
    root.provide("thing", "second")
    await beside.settle()
    assert log == ["first", "second"]
    beside.commit()


async def test_versions_that_come_to_rest_at_one_position_are_told_apart(root: Context) -> None:
    gates = [Gate() for _ in range(3)]

    def version(gate: Gate) -> Plugin:
        return Plugin("p", lambda ctx: gate.stop)

    old = root.plugin(version(gates[0]))
    await settled(root)
    for gate in gates[1:]:
        beside = stage(root)
        new = add(beside, root, version(gate), old)
        await beside.settle()
        beside.commit()
        old = new
    retired = root.fiber.kernel.retired
    assert len(retired.fibers) == 2
    for gate in reversed(gates):
        gate.go.set()
        await trio.testing.wait_all_tasks_blocked()
    assert not retired.fibers and not [*retired.turns._inactive]
