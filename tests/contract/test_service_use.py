"""Contract 2.1 to 2.4, 2.7: services - who offers them, who may use them, and what follows when they change."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from core_kit import Gate, Log, Plugin, left_over, provider, settled, states

from dsh_runtime import ClashError, Context, HostError, Service, ServiceError, State, open_host


async def test_a_fiber_waits_in_pending_until_every_required_service_is_there(root: Context) -> None:
    log = Log()
    fiber = root.plugin(log.plugin("c", inject=["x", "y"]))
    root.plugin(provider("px", "x"))
    await settled(root)
    assert (fiber.state, fiber.missing, log) == (State.PENDING, ["y"], [])
    root.plugin(provider("py", "y"))
    await settled(root)
    assert (fiber.state, log) == (State.ACTIVE, ["+c"])


async def test_when_a_service_goes_its_user_unwinds_and_waits_again(root: Context) -> None:
    log = Log()
    owner = root.plugin(provider("p", "x"))
    fiber = root.plugin(log.plugin("c", inject=["x"]))
    await settled(root)
    await owner.dispose()
    assert (fiber.state, log) == (State.PENDING, ["+c", "-c"])


async def test_when_a_service_is_back_its_user_applies_afresh(root: Context) -> None:
    log = Log()
    owner = root.plugin(provider("p", "x"))
    fiber = root.plugin(log.plugin("c", inject=["x"]))
    await settled(root)
    await owner.update(None)
    await settled(root)
    assert (fiber.state, log) == (State.ACTIVE, ["+c", "-c", "+c"])


async def test_a_service_replaced_by_another_provider_is_applied_with_afresh(root: Context) -> None:
    seen: list[Any] = []
    owner = root.plugin(provider("p", "x", 1))
    root.plugin(Plugin("c", lambda ctx: seen.append(ctx.x), ["x"]))
    await settled(root)
    await owner.dispose()
    root.plugin(provider("q", "x", 2))
    await settled(root)
    assert seen == [1, 2]


async def test_a_mapping_says_which_services_are_required(root: Context) -> None:
    seen: list[Any] = []
    inject = {"x": True, "y": False}
    fiber = root.plugin(Plugin("c", lambda ctx: seen.append((ctx.x, ctx.y)), inject))
    root.plugin(provider("p", "x"))
    await settled(root)
    assert (fiber.state, seen) == (State.ACTIVE, [("value", None)])


async def test_an_optional_service_that_appears_restarts_its_user(root: Context) -> None:
    seen: list[Any] = []
    root.plugin(Plugin("c", lambda ctx: seen.append(ctx.x), {"x": False}))
    await settled(root)
    root.plugin(provider("p", "x"))
    await settled(root)
    assert seen == [None, "value"]


async def test_an_optional_service_that_disappears_restarts_its_user_without_it(root: Context) -> None:
    seen: list[Any] = []
    owner = root.plugin(provider("p", "x"))
    fiber = root.plugin(Plugin("c", lambda ctx: seen.append(ctx.x), {"x": False}))
    await settled(root)
    await owner.dispose()
    await settled(root)
    assert (fiber.state, seen) == (State.ACTIVE, ["value", None])


async def test_an_injected_service_is_an_attribute_of_the_context(root: Context) -> None:
    root.plugin(provider("p", "x", {"a": 1}))
    fiber = root.plugin(Plugin("c", inject=["x"]))
    await settled(root)
    assert fiber.ctx.x == {"a": 1}


async def test_a_self_provided_service_is_an_attribute_of_the_context(root: Context) -> None:
    seen: list[Any] = []

    def apply(ctx: Context) -> None:
        ctx.provide("x", 1)
        seen.append(ctx.x)

    await root.plugin(apply).wait()
    assert seen == [1]


async def test_a_service_that_is_not_injected_raises_and_names_plugin_name_and_line(root: Context) -> None:
    root.plugin(provider("p", "clock"))
    plugin = Plugin("c", inject=["clock"])
    fiber = root.plugin(plugin)
    root.plugin(provider("q", "colour"))
    await settled(root)
    with pytest.raises(ServiceError) as caught:
        _ = fiber.ctx.colour
    message = str(caught.value)
    assert "'c'" in message and "'colour'" in message and "inject = ['clock', 'colour']" in message


async def test_a_misspelt_service_is_answered_with_the_one_meant(root: Context) -> None:
    root.plugin(provider("p", "clock"))
    fiber = root.plugin(Plugin("c"))
    await settled(root)
    with pytest.raises(ServiceError, match=r"'clok' \(did you mean 'clock'\?\)"):
        _ = fiber.ctx.clok


async def test_hasattr_of_a_service_that_is_not_injected_is_false(root: Context) -> None:
    fiber = root.plugin(Plugin("c"))
    await settled(root)
    assert not hasattr(fiber.ctx, "anything")


async def test_get_looks_a_service_up_without_declaring_it(root: Context) -> None:
    root.plugin(provider("p", "x"))
    fiber = root.plugin(Plugin("c"))
    await settled(root)
    assert (fiber.ctx.get("x"), fiber.ctx.get("y")) == ("value", None)


async def test_a_service_counts_as_there_only_while_its_provider_is_active(root: Context) -> None:
    gate = Gate()

    async def apply(ctx: Context) -> None:
        ctx.provide("x", 1)
        await gate.stop()

    owner = root.plugin(Plugin("p", apply))
    user = root.plugin(Plugin("c", inject=["x"]))
    await gate.reached.wait()
    assert (root.get("x"), user.missing) == (None, ["x"])
    gate.go.set()
    await settled(root)
    assert (root.get("x"), states(owner, user)) == (1, [State.ACTIVE, State.ACTIVE])


async def test_a_second_provider_is_an_error_that_names_the_owner(root: Context) -> None:
    root.plugin(provider("first", "x"))
    second = root.plugin(provider("second", "x"))
    with pytest.raises(ClashError, match=r"'second' registers service 'x', which plugin 'first' has .*; rename"):
        await second.wait()
    assert root.get("x") == "value"


async def test_only_the_owner_may_replace_a_service_and_its_users_restart(root: Context) -> None:
    seen: list[Any] = []
    owner = root.plugin(provider("p", "x", 1))
    root.plugin(Plugin("c", lambda ctx: seen.append(ctx.x), ["x"]))
    await settled(root)
    owner.ctx.provide("x", 2)
    await settled(root)
    assert seen == [1, 2]


async def test_replacing_a_service_again_and_again_leaves_one_effect(root: Context) -> None:
    owner = root.plugin(provider("p", "x", 0))
    await settled(root)
    before = len(owner.stack.steps)
    for value in range(100):
        owner.ctx.provide("x", value)
    assert len(owner.stack.steps) == before


async def test_the_undo_of_a_replaced_service_leaves_the_new_one(root: Context) -> None:
    undo = root.provide("x", 1)
    root.provide("x", 2)
    undo()
    assert root.get("x") == 2


async def test_a_service_that_is_withdrawn_early_is_gone_for_its_owner_too(root: Context) -> None:
    root.provide("x", 1)()
    assert root.get("x") is None
    with pytest.raises(ServiceError, match="the host has no service 'x'"):
        _ = root.x


async def test_a_service_of_an_earlier_life_is_not_seen_in_the_next(root: Context) -> None:
    seen: list[Any] = []

    def apply(ctx: Context, config: bool) -> None:
        if config:
            ctx.provide("x", 1)
        seen.append(getattr(ctx, "x", None))

    fiber = root.plugin(Plugin("p", apply), True)
    await settled(root)
    await fiber.update(False)
    assert seen == [1, None]


async def test_a_second_provider_may_step_in_while_the_first_is_unloading(root: Context) -> None:
    gate = Gate()
    seen: list[Any] = []

    def apply(ctx: Context) -> None:
        ctx.effect(lambda: gate.stop)
        ctx.provide("x", "old")

    old = root.plugin(Plugin("old", apply))
    root.plugin(Plugin("c", lambda ctx: seen.append(ctx.x), ["x"]))
    await settled(root)
    old.dispose()
    await gate.reached.wait()
    await root.plugin(provider("new", "x", "new")).wait()
    gate.go.set()
    await settled(root)
    assert seen == ["old", "new"]


async def test_no_user_serves_a_stale_service_when_it_changes_between_turn_and_start(root: Context) -> None:
    """The service is replaced at the very moment at which its user gets its turn."""
    seen: list[Any] = []
    owner = root.plugin(provider("p", "x", 1))
    await settled(root)

    def replace(fiber: Any, previous: str) -> None:
        if fiber.id == "c" and fiber.state == "loading" and root.get("x") == 1:
            owner.ctx.provide("x", 2)

    root.on("plugin/state", replace)
    user = root.plugin(Plugin("c", lambda ctx: seen.append(ctx.x), ["x"]))
    await settled(root)
    assert (user.state, seen) == (State.ACTIVE, [2])


async def test_a_service_that_flaps_leaves_its_user_with_the_last_one(root: Context) -> None:
    seen: list[Any] = []
    owner = root.plugin(provider("p", "x", 0))
    user = root.plugin(Plugin("c", lambda ctx: seen.append(ctx.x), ["x"]))
    await settled(root)
    for value in range(1, 200):
        owner.ctx.provide("x", value)
    await settled(root)
    assert (user.state, seen) == (State.ACTIVE, [0, 199]), "a storm of changes is one restart"


async def test_users_can_read_the_service_while_they_unload(root: Context) -> None:
    seen: list[Any] = []
    owner = root.plugin(provider("p", "x"))
    root.plugin(Plugin("c", lambda ctx: lambda: seen.append(ctx.x), ["x"]))
    await settled(root)
    await owner.dispose()
    assert seen == ["value"]


async def test_unloading_withdraws_services_first_then_users_unload_then_its_own_effects_go(root: Context) -> None:
    log = Log()

    def provide(ctx: Context) -> None:
        ctx.provide("x", 1)
        ctx.plugin(log.plugin("child"))
        ctx.effect(lambda: lambda: log.append("-own"))

    owner = root.plugin(log.plugin("p", provide))
    for name in ("c1", "c2"):
        root.plugin(log.plugin(name, lambda ctx: lambda: log.append(f"{root.get('x')}"), ["x"]))
    await settled(root)
    log.clear()
    await owner.dispose()
    assert log == ["None", "-c2", "None", "-c1", "-own", "-child", "-p"]


async def test_users_of_users_unload_before_them(root: Context) -> None:
    log = Log()
    owner = root.plugin(log.plugin("p", lambda ctx: ctx.provide("x", 1)))
    root.plugin(log.plugin("q", lambda ctx: ctx.provide("y", 1), ["x"]))
    root.plugin(log.plugin("r", inject=["y"]))
    await settled(root)
    log.clear()
    await owner.dispose()
    assert log == ["-r", "-q", "-p"]


async def test_a_user_whose_undo_waits_for_the_provider_gets_an_error_instead_of_a_deadlock(root: Context) -> None:
    caught: list[str] = []

    def apply(ctx: Context) -> Any:
        async def undo() -> None:
            try:
                await owner.dispose()
            except Exception as error:
                caught.append(type(error).__name__)

        return undo

    owner = root.plugin(provider("p", "x"))
    root.plugin(Plugin("c", apply, ["x"]))
    await settled(root)
    await owner.dispose()
    assert (caught, owner.state) == (["DeadlockError"], State.DISPOSED)


async def test_an_optional_service_that_rests_on_its_user_is_not_taken_up(root: Context) -> None:
    """Taking it up would take it away again, and so on for ever."""
    log = Log()
    p = root.plugin(log.plugin("p", lambda ctx: ctx.provide("x", 1), {"y": False}))
    q = root.plugin(log.plugin("q", lambda ctx: ctx.provide("y", 1), ["x"]))
    await settled(root)
    assert (log, states(p, q), p.ctx.y) == (["+p", "+q"], [State.ACTIVE, State.ACTIVE], None)


async def test_an_optional_service_that_rests_on_its_user_through_others_is_not_taken_up(root: Context) -> None:
    log = Log()
    root.plugin(log.plugin("s", lambda ctx: ctx.provide("z", 1), {"x": False}))
    root.plugin(log.plugin("p", lambda ctx: ctx.plugin(provider("c", "x")) and None, ["z"]))
    await settled(root)
    assert log == ["+s", "+p"]


async def test_an_optional_service_of_a_child_is_not_taken_up(root: Context) -> None:
    log = Log()
    root.plugin(log.plugin("p", lambda ctx: ctx.plugin(provider("c", "x")) and None, {"x": False}))
    await settled(root)
    assert log == ["+p"]


async def test_plugins_that_use_one_another_unload_without_waiting_for_each_other(
    root: Context, autojump_clock: trio.testing.MockClock
) -> None:
    log = Log()
    p = root.plugin(log.plugin("p", lambda ctx: ctx.provide("x", 1), {"y": False}))
    root.plugin(log.plugin("q", lambda ctx: ctx.provide("y", 1), ["x"]))
    await settled(root)
    began = trio.current_time()
    await p.dispose()
    assert (trio.current_time(), log) == (began, ["+p", "+q", "-q", "-p"])


async def test_a_circle_of_required_services_stays_pending(root: Context) -> None:
    a = root.plugin(provider("a", "x", inject=["y"]))
    b = root.plugin(provider("b", "y", inject=["x"]))
    await settled(root)
    assert states(a, b) == [State.PENDING, State.PENDING]


async def test_a_circle_of_required_services_is_reported_with_its_members() -> None:
    with pytest.raises(HostError) as caught:
        async with open_host(plugins=[provider("a", "x", inject=["y"]), provider("b", "y", inject=["x"])]):
            pass
    assert "a -> b -> a" in str(caught.value)


async def test_a_plugin_that_requires_its_own_service_is_a_circle(root: Context) -> None:
    fiber = root.plugin(provider("a", "x", inject=["x"]))
    await settled(root)
    assert (fiber.state, root.fiber.kernel.circle_of(fiber)) == (State.PENDING, ["a", "a"])


async def test_a_plugin_that_waits_for_a_circle_is_no_member_of_it(root: Context) -> None:
    root.plugin(provider("a", "x", inject=["y"]))
    root.plugin(provider("b", "y", inject=["x"]))
    outside = root.plugin(Plugin("c", inject=["x"]))
    await settled(root)
    assert root.fiber.kernel.circle_of(outside) == []


async def test_looking_for_a_circle_among_many_waiting_plugins_ends_soon(root: Context) -> None:
    """Every plugin needs all the later ones, the last one needs nobody's: the paths are many, the plugins few."""
    names = [f"s{n}" for n in range(30)]
    fibers = [root.plugin(provider(f"p{n}", name, inject=[*names[n + 1 :], "nobody"])) for n, name in enumerate(names)]
    await settled(root)
    assert root.fiber.kernel.circle_of(fibers[0]) == []


async def test_children_inherit_the_services_that_their_parent_injected(root: Context) -> None:
    seen: list[Any] = []

    def grandchild(ctx: Context) -> None:
        seen.append(ctx.x)

    root.plugin(provider("p", "x"))
    root.plugin(Plugin("parent", lambda ctx: ctx.plugin(lambda ctx: ctx.plugin(grandchild) and None) and None, ["x"]))
    await settled(root)
    assert seen == ["value"]


async def test_children_do_not_inherit_what_their_parent_did_not_inject(root: Context) -> None:
    root.plugin(provider("p", "x"))
    children: list[Any] = []
    root.plugin(Plugin("parent", lambda ctx: children.append(ctx.plugin(Plugin("child")))))
    await settled(root)
    with pytest.raises(ServiceError, match="plugin 'child' uses the service 'x'"):
        _ = children[0].ctx.x


async def test_isolate_hides_the_outer_service(root: Context) -> None:
    root.provide("x", "outer")
    inner = root.isolate("x")
    waiting = inner.plugin(Plugin("c", inject=["x"]))
    await settled(root)
    assert (inner.get("x"), waiting.state, root.get("x")) == (None, State.PENDING, "outer")


async def test_what_an_isolated_context_provides_stays_inside(root: Context) -> None:
    seen: list[Any] = []
    root.provide("x", "outer")
    inner = root.isolate("x")
    inner.plugin(provider("p", "x", "inner"))
    inner.plugin(Plugin("c", lambda ctx: seen.append(ctx.x), ["x"]))
    await settled(root)
    assert (seen, root.x) == (["inner"], "outer")


async def test_isolation_is_inherited_by_children(root: Context) -> None:
    root.provide("x", "outer")
    children: list[Any] = []
    inner = root.isolate("x")
    inner.plugin(Plugin("parent", lambda ctx: children.append(ctx.plugin(Plugin("child", inject=["x"])))))
    await settled(root)
    assert children[0].state is State.PENDING


async def test_isolating_one_name_leaves_the_others(root: Context) -> None:
    root.provide("x", 1)
    root.provide("y", 2)
    assert root.isolate("x").get("y") == 2


@pytest.mark.parametrize("name", ["", "two words", "_hidden", "effect", "fiber", 3, None])
async def test_a_service_name_that_cannot_be_an_attribute_is_refused(root: Context, name: Any) -> None:
    with pytest.raises(ServiceError, match="plugin 'root' provides"):
        root.provide(name, 1)


class Registry(Service):
    """A service whose method registers for its caller."""

    name = "registry"

    def __init__(self, config: Any = None) -> None:
        self.config = config
        self.seen: list[str] = []

    def add(self, value: str) -> Any:
        self.seen.append(self.ctx.fiber.id)
        return self.ctx.register("things", value)


def _things(ctx: Context) -> list[tuple[str, str]]:
    entries = ctx.fiber.kernel.ledger.resolve("things", (None,))
    return [(entry.fiber.id, entry.value) for entry in entries]


async def test_what_a_services_method_registers_belongs_to_its_caller(root: Context) -> None:
    root.plugin(Registry)
    caller = root.plugin(Plugin("c", lambda ctx: ctx.registry.add("a") and None, ["registry"]))
    await settled(root)
    assert _things(root) == [("c", "a")]
    await caller.dispose()
    assert _things(root) == []


async def test_what_a_services_method_registers_through_a_scope_is_the_scopes(root: Context) -> None:
    root.plugin(Registry)
    await settled(root)
    with root_scope(root) as scope:
        scope.ctx.registry.add("a")
        assert _things(root) == []
        assert [e.value for e in root.fiber.kernel.ledger.resolve("things", ("key",))] == ["a"]


class root_scope:  # noqa: N801  # reads like a context manager function
    def __init__(self, ctx: Context) -> None:
        self.scope = ctx.scope("key")

    def __enter__(self) -> Any:
        return self.scope

    def __exit__(self, *exc: object) -> None:
        self.scope.dispose()


async def test_all_callers_share_the_services_attributes(root: Context) -> None:
    service = Registry()
    root.plugin(service)
    for name in "ab":
        root.plugin(Plugin(name, lambda ctx: ctx.registry.add("x") and None, ["registry"]))
    await settled(root)
    assert service.seen == ["a", "b"]


async def test_a_service_class_gets_its_config(root: Context) -> None:
    root.plugin(Registry, {"a": 1})
    await settled(root)
    assert root.registry.config == {"a": 1}


async def test_the_caller_of_a_service_cannot_assign_its_context(root: Context) -> None:
    root.plugin(Registry)
    await settled(root)
    with pytest.raises(ServiceError, match="cannot be assigned"):
        root.registry.ctx = root


async def test_one_context_always_sees_the_same_view_of_a_service(root: Context) -> None:
    root.plugin(Registry)
    await settled(root)
    assert root.registry is root.registry and isinstance(root.registry, Registry)


async def test_a_service_starts_before_it_is_there_and_stops_before_its_registrations_go(root: Context) -> None:
    log = Log()

    class Slow(Service):
        name = "slow"

        async def start(self) -> None:
            self.ctx.effect(lambda: lambda: log.append(f"registration {self.ctx.fiber.id}"))
            await trio.lowlevel.checkpoint()
            log.append(f"start {root.get('slow')}")

        async def stop(self) -> None:
            log.append(f"stop {root.get('slow')}")

    fiber = root.plugin(Slow)
    await fiber.wait()
    await fiber.dispose()
    assert log == ["start None", "stop None", "registration slow"]


async def test_a_service_that_fails_to_start_is_not_there(root: Context) -> None:
    class Broken(Service):
        name = "broken"

        def start(self) -> None:
            raise ValueError("no")

    with pytest.raises(ValueError):
        await root.plugin(Broken).wait()
    assert root.get("broken") is None


def test_a_service_with_slots_is_refused() -> None:
    with pytest.raises(ServiceError, match="__slots__"):

        class Slotted(Service):
            __slots__ = ("a",)
            name = "slotted"


async def test_a_service_of_the_root_is_there_for_everybody(root: Context) -> None:
    root.provide("x", 1)
    fiber = root.plugin(Plugin("c", inject=["x"]))
    await fiber.wait()
    assert fiber.ctx.x == 1


async def test_a_user_with_an_optional_service_is_not_applied_again_while_the_host_closes() -> None:
    from dsh_runtime.core.kernel import open_kernel

    log = Log()
    async with open_kernel() as root:
        root.provide("x", 1)
        root.plugin(log.plugin("c", inject={"x": False}))
        await settled(root)
    assert log == ["+c", "-c"]


async def test_withdrawn_services_leave_nothing(root: Context) -> None:
    for _ in range(3):
        owner = root.plugin(provider("p", "x"))
        inner = root.isolate("y")
        inner.provide("y", 1)()
        await owner.wait()
        await owner.dispose()
    assert left_over(root) == {} and root.fiber.provided == {}
