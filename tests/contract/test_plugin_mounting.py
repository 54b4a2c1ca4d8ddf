"""Contract 2.1, 2.5, 2.7: what a plugin is, how it is mounted, and what a failing one leaves behind."""

# ruff: noqa: ASYNC105  # an undo gives something to await

from __future__ import annotations

import logging
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import trio
from core_kit import Gate, Log, Plugin, left_over, provider, settled, states

from dsh_runtime import Context, DisposedError, Fiber, PluginError, Service, State, hookimpl, open_host


async def test_a_function_is_a_plugin(root: Context) -> None:
    seen: list[Context] = []

    def notes(ctx: Context) -> None:
        seen.append(ctx)

    fiber = root.plugin(notes)
    await fiber.wait()
    assert (fiber.name, seen) == ("notes", [fiber.ctx])


async def test_a_module_is_a_plugin(root: Context) -> None:
    module = ModuleType("somewhere.deep.notes")
    module.apply = lambda ctx, config: module.__dict__.update(seen=config)  # type: ignore[attr-defined]
    fiber = root.plugin(module, {"a": 1})
    await fiber.wait()
    assert (fiber.name, module.seen) == ("notes", {"a": 1})


async def test_an_object_with_hookimpl_functions_alone_is_a_plugin(root: Context) -> None:
    heard: list[str] = []

    class Watcher:
        @hookimpl
        def plugin_state(self, fiber: Fiber) -> None:
            heard.append(fiber.state)

    await root.plugin(Watcher()).wait()
    await root.plugin(Plugin("other")).wait()
    assert heard[-1] == "active"


async def test_apply_may_be_async(root: Context) -> None:
    async def apply(ctx: Context) -> None:
        await trio.lowlevel.checkpoint()
        ctx.provide("late", 1)

    await root.plugin(Plugin("a", apply)).wait()
    assert root.get("late") == 1


async def test_apply_gets_its_config_if_it_takes_two_arguments(root: Context) -> None:
    seen: list[Any] = []
    await root.plugin(Plugin("a", lambda ctx, config: seen.append(config)), 7).wait()
    assert seen == [7]


async def test_apply_never_runs_inside_ctx_plugin(root: Context) -> None:
    log = Log()
    fiber = root.plugin(log.plugin("a"))
    assert (log, fiber.state) == ([], State.PENDING)
    await fiber.wait()
    assert log == ["+a"]


async def test_mounting_one_plugin_twice_gives_two_fibers(root: Context) -> None:
    log = Log()
    plugin = log.plugin("a")
    first, second = root.plugin(plugin), root.plugin(plugin)
    await settled(root)
    assert first is not second and first.id != second.id
    await first.dispose()
    assert (log, second.state) == (["+a", "+a", "-a"], State.ACTIVE)


@pytest.mark.parametrize(
    "nothing",
    [None, 3, "tools", object(), [], {}, Plugin("", None), Plugin("a", "no function")],  # type: ignore[arg-type]
    ids=repr,
)
async def test_an_object_that_is_no_plugin_is_refused_at_once_and_leaves_nothing(root: Context, nothing: Any) -> None:
    with pytest.raises(PluginError):
        root.plugin(nothing)
    assert left_over(root) == {}


async def test_the_refusal_of_an_object_says_what_it_is_and_what_to_give(root: Context) -> None:
    with pytest.raises(
        PluginError, match=r"3 is no plugin: it has neither apply\(ctx\) nor @hookimpl .*; give a module"
    ):
        root.plugin(3)


async def test_a_module_that_is_no_plugin_is_named_by_its_file(root: Context, tmp_path: Path) -> None:
    module = ModuleType("some_internal_name")
    module.__file__ = str(tmp_path / "notes.py")
    with pytest.raises(PluginError, match=rf"^module '{re.escape(module.__file__)}' is no plugin"):
        root.plugin(module)


@pytest.mark.parametrize("raised", [SystemExit(3), GeneratorExit(), BaseException("of its own")], ids=repr)
async def test_whatever_an_apply_raises_fails_its_fiber_alone(root: Context, raised: BaseException) -> None:
    def failing(ctx: Context) -> None:
        raise raised

    fiber, other = root.plugin(failing), root.plugin(lambda ctx: None)
    with pytest.raises(BaseException) as caught:
        await fiber.wait()
    assert raised in (caught.value, caught.value.__cause__)
    await other.wait()
    assert (fiber.state, other.state) == (State.FAILED, State.ACTIVE)


async def test_a_class_whose_apply_is_a_method_is_refused_with_the_advice_to_make_an_instance(root: Context) -> None:
    class Notes:
        def apply(self, ctx: Context) -> None: ...

    with pytest.raises(PluginError, match=r"give an instance, Notes\(\)"):
        root.plugin(Notes)


@pytest.mark.parametrize("inject", ["tools", 5, [3], [["tools"]], {"tools": "yes"}, {3: True}], ids=repr)
async def test_an_inject_that_names_no_services_is_refused(root: Context, inject: Any) -> None:
    plugin = Plugin("a")
    plugin.inject = inject
    with pytest.raises(PluginError, match="plugin 'a'"):
        root.plugin(plugin)
    assert left_over(root) == {}


async def test_an_apply_that_takes_too_much_is_refused(root: Context) -> None:
    with pytest.raises(PluginError, match=r"define apply\(ctx\) or apply\(ctx, config\)"):
        root.plugin(Plugin("a", lambda ctx, config, more: None))


async def test_a_service_without_a_name_is_refused(root: Context) -> None:
    class Nameless(Service):
        pass

    with pytest.raises(PluginError, match="give its class name"):
        root.plugin(Nameless)
    assert left_over(root) == {}


def _function(undo: Any) -> Any:
    def apply(ctx: Context) -> Any:
        return undo

    return apply


def _async_function(undo: Any) -> Any:
    async def apply(ctx: Context) -> Any:
        return undo

    return apply


def _generator(undo: Any) -> Any:
    def apply(ctx: Context) -> Any:
        yield undo

    return apply


def _service(undo: Any) -> Any:
    class Notes(Service):
        name = "notes"

        def start(self) -> Any:
            return undo

    return Notes


def _module(undo: Any) -> Any:
    module = ModuleType("notes")
    module.apply = lambda ctx: undo  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("form", [_function, _async_function, _generator, _service, _module])
async def test_a_returned_undo_runs_whatever_the_plugins_form(root: Context, form: Any) -> None:
    undone: list[str] = []
    fiber = root.plugin(form(lambda: undone.append("undone")))
    await fiber.wait()
    await fiber.dispose()
    assert undone == ["undone"]


async def test_an_apply_that_is_an_async_generator_is_an_error_and_not_silence(root: Context) -> None:
    async def apply(ctx: Context) -> Any:
        yield 1

    with pytest.raises(PluginError, match="async generator"):
        await root.plugin(apply).wait()


async def test_waiting_returns_on_pending(root: Context) -> None:
    fiber = root.plugin(Plugin("a", inject=["missing"]))
    await fiber.wait()
    assert (fiber.state, fiber.missing) == (State.PENDING, ["missing"])


async def test_waiting_raises_the_original_exception_on_failed(root: Context) -> None:
    error = ValueError("no")

    def apply(ctx: Context) -> None:
        raise error

    fiber = root.plugin(apply)
    with pytest.raises(ValueError) as caught:
        await fiber.wait()
    assert caught.value is error and fiber.error is error


async def test_an_apply_that_raises_leaves_nothing_behind(root: Context) -> None:
    log = Log()

    async def task() -> None:
        try:
            await trio.sleep_forever()
        finally:
            log.append("-task")

    async def apply(ctx: Context) -> None:
        ctx.effect(lambda: lambda: log.append("-effect"))
        ctx.provide("service", 1)
        ctx.on("plugin/state", lambda fiber: None)
        ctx.scope("s").ctx.on("plugin/state", lambda fiber: None)
        ctx.plugin(log.plugin("child"))
        ctx.start_soon(task)
        await trio.testing.wait_all_tasks_blocked()
        raise ValueError("no")

    fiber = root.plugin(Plugin("a", apply))
    with pytest.raises(ValueError, match="no"):
        await fiber.wait()
    assert (fiber.state, log) == (State.FAILED, ["-task", "-effect"])
    await fiber.dispose()
    assert left_over(root) == {}


async def test_a_child_of_a_failed_apply_is_never_applied(root: Context) -> None:
    log = Log()

    def apply(ctx: Context) -> None:
        ctx.effect(lambda: lambda: trio.lowlevel.checkpoint())
        ctx.plugin(log.plugin("child"))
        ctx.effect(lambda: lambda: trio.lowlevel.checkpoint())
        raise ValueError("no")

    with pytest.raises(ValueError):
        await root.plugin(Plugin("a", apply)).wait()
    assert log == []


async def test_the_error_of_a_failed_apply_is_logged_with_plugin_file_and_line(
    root: Context, caplog: pytest.LogCaptureFixture
) -> None:
    def apply(ctx: Context) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError):
        await root.plugin(apply, id="broken").wait()
    record = next(record for record in caplog.records if "broken" in record.getMessage())
    assert record.levelno == logging.ERROR and record.exc_info is not None
    assert __file__ in logging.Formatter().formatException(record.exc_info)


async def test_the_error_of_a_failed_apply_is_kept_with_its_traceback(root: Context) -> None:
    def apply(ctx: Context) -> None:
        raise ValueError("no")

    fiber = root.plugin(apply)
    with pytest.raises(ValueError):
        await fiber.wait()
    assert fiber.error is not None and fiber.error.__traceback__ is not None


async def test_updating_a_failed_fiber_tries_again(root: Context) -> None:
    def apply(ctx: Context, config: int) -> None:
        if config == 0:
            raise ValueError("zero")

    fiber = root.plugin(Plugin("a", apply), 0)
    with pytest.raises(ValueError):
        await fiber.wait()
    await fiber.update(1)
    assert (fiber.state, fiber.error) == (State.ACTIVE, None)


async def test_a_failed_update_can_fail_again(root: Context) -> None:
    def apply(ctx: Context, config: str) -> None:
        raise ValueError(config)

    fiber = root.plugin(Plugin("a", apply), "first")
    with pytest.raises(ValueError, match="first"):
        await fiber.wait()
    with pytest.raises(ValueError, match="second"):
        await fiber.update("second")


async def test_mounting_on_a_disposed_context_raises(root: Context) -> None:
    fiber = root.plugin(Plugin("a"))
    await fiber.wait()
    ctx = fiber.ctx
    await fiber.dispose()
    with pytest.raises(DisposedError, match="plugin 'a'"):
        ctx.plugin(Plugin("b"))
    assert left_over(root) == {}


@pytest.mark.parametrize(
    "register",
    [
        lambda ctx: ctx.on("plugin/state", lambda fiber: None),
        lambda ctx: ctx.provide("service", 1),
        lambda ctx: ctx.effect(lambda: None),
        lambda ctx: ctx.start_soon(trio.sleep_forever),
        lambda ctx: ctx.scope("key"),
        lambda ctx: ctx.register("table", 1),
        lambda ctx: ctx.isolate("x").provide("x", 1),
    ],
    ids=["on", "provide", "effect", "start_soon", "scope", "register", "isolate"],
)
async def test_registering_on_a_disposed_context_raises(root: Context, register: Any) -> None:
    fiber = root.plugin(Plugin("a"))
    await fiber.wait()
    ctx = fiber.ctx
    await fiber.dispose()
    with pytest.raises(DisposedError):
        register(ctx)
    assert left_over(root) == {}


async def test_the_context_of_an_earlier_life_stays_closed_in_the_next(root: Context) -> None:
    fiber = root.plugin(Plugin("a"))
    await fiber.wait()
    old = fiber.ctx
    await fiber.update(None)
    assert fiber.state is State.ACTIVE
    with pytest.raises(DisposedError):
        old.on("plugin/state", lambda fiber: None)
    fiber.ctx.on("plugin/state", lambda fiber: None)


async def test_registering_while_unloading_raises(root: Context) -> None:
    refused: list[type] = []

    def apply(ctx: Context) -> Any:
        def undo() -> None:
            try:
                ctx.provide("late", 1)
            except DisposedError as error:
                refused.append(type(error))

        return undo

    fiber = root.plugin(apply)
    await fiber.wait()
    await fiber.dispose()
    assert refused == [DisposedError]


async def test_each_change_of_state_is_observable(root: Context) -> None:
    heard: list[tuple[str, str]] = []
    root.on("plugin/state", lambda fiber, previous: heard.append((previous, str(fiber.state))))
    fiber = root.plugin(Plugin("a"))
    await fiber.wait()
    await fiber.dispose()
    assert heard == [
        ("pending", "loading"),
        ("loading", "active"),
        ("active", "unloading"),
        ("unloading", "disposed"),
    ]


async def test_fibers_that_are_ready_apply_one_at_a_time_in_order(root: Context) -> None:
    log = Log()

    def slow(name: str) -> Plugin:
        async def apply(ctx: Context) -> None:
            log.append(f"+{name}")
            await trio.testing.wait_all_tasks_blocked()
            log.append(f"{name}!")

        return Plugin(name, apply)

    for name in "abcd":
        root.plugin(slow(name))
    await settled(root)
    assert log == ["+a", "a!", "+b", "b!", "+c", "c!", "+d", "d!"]


async def test_a_parent_may_wait_for_its_child_inside_apply(root: Context) -> None:
    log = Log()

    async def apply(ctx: Context) -> None:
        child = ctx.plugin(log.plugin("child"))
        await child.wait()
        log.append(f"child is {child.state}")

    await root.plugin(Plugin("parent", apply)).wait()
    assert log == ["+child", "child is active"]


@pytest.mark.parametrize("attempt", range(8))  # trio runs ready tasks in random order
async def test_a_parent_that_has_waited_for_its_child_goes_on_before_the_next_plugin_applies(
    root: Context, attempt: int
) -> None:
    log = Log()

    async def apply(ctx: Context) -> None:
        await ctx.plugin(log.plugin("child")).wait()
        await trio.testing.wait_all_tasks_blocked()
        log.append("parent")

    root.plugin(Plugin("parent", apply))
    root.plugin(log.plugin("next"))
    await settled(root)
    assert log == ["+child", "parent", "+next"]


async def test_a_parent_that_waits_for_a_child_that_stays_pending_goes_on(root: Context) -> None:
    async def apply(ctx: Context) -> None:
        await ctx.plugin(Plugin("child", inject=["missing"])).wait()

    fiber = root.plugin(Plugin("parent", apply))
    await fiber.wait()
    assert fiber.state is State.ACTIVE


async def test_waiting_for_itself_inside_apply_is_an_error_instead_of_a_deadlock(root: Context) -> None:
    from dsh_runtime import DeadlockError

    async def apply(ctx: Context) -> None:
        await ctx.fiber.wait()

    with pytest.raises(DeadlockError, match=r"plugin 'a' waits for .* of plugin 'a'.*; ask for it without awaiting"):
        await root.plugin(Plugin("a", apply)).wait()


async def test_a_config_is_checked_before_apply() -> None:
    log = Log()

    class Picky:
        name = "picky"

        class Config:
            pass

        def apply(self, ctx: Context, config: Any) -> None:
            log.append("applied")

    import attrs

    Picky.Config = attrs.define(type("Config", (), {"__annotations__": {"count": int}}))  # type: ignore[misc]
    async with open_host(plugins=[(Picky(), {"count": "many"})], strict=False) as host:
        fiber = host.plugins[0].fiber
        assert fiber is not None and fiber.state is State.FAILED and "count" in str(fiber.error)
    assert log == []


async def test_a_rejected_update_of_a_running_plugin_changes_nothing() -> None:
    import attrs

    log = Log()

    @attrs.define
    class Config:
        count: int
        name: str = "x"

    plugin = log.plugin("a")
    plugin.Config = Config  # type: ignore[attr-defined]
    async with open_host(plugins=[(plugin, {"count": 1})]) as host:
        fiber = host.plugins[0].fiber
        assert fiber is not None
        config, settings = fiber.config, fiber.settings
        with pytest.raises(Exception, match="count") as caught:
            fiber.update({"count": "many", "name": 3})
        assert "name" in str(caught.value), "every offending path is listed"
        await settled(host.ctx)
        assert (fiber.state, fiber.config, fiber.settings, log) == (State.ACTIVE, config, settings, ["+a"])


async def test_a_plugin_for_a_newer_hookspec_is_refused_with_both_versions_named(root: Context) -> None:
    from dsh_hookspecs import HOOKSPECS_VERSION

    plugin = Plugin("a")
    plugin.requires_hookspecs = "1.99"  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match=rf"'a' is built for hookspecs 1\.99, this host has {HOOKSPECS_VERSION}"):
        root.plugin(plugin)
    assert left_over(root) == {}


async def test_a_plugin_for_the_hosts_own_hookspec_is_taken(root: Context) -> None:
    from dsh_hookspecs import HOOKSPECS_VERSION

    plugin = Plugin("a")
    plugin.requires_hookspecs = HOOKSPECS_VERSION  # type: ignore[attr-defined]
    await root.plugin(plugin).wait()


async def test_a_requirement_that_is_no_version_is_refused(root: Context) -> None:
    plugin = Plugin("a")
    plugin.requires_hookspecs = "new"  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match=r"write it as '1\.2'"):
        root.plugin(plugin)


async def test_children_are_applied_after_their_parent_in_order(root: Context) -> None:
    log = Log()

    def family(ctx: Context) -> None:
        ctx.plugin(log.plugin("c1"))
        ctx.plugin(log.plugin("c2"))

    root.plugin(log.plugin("p", family))
    root.plugin(log.plugin("q"))
    await settled(root)
    assert log == ["+p", "+c1", "+c2", "+q"]


async def test_two_kernels_side_by_side_know_nothing_of_each_other() -> None:
    from dsh_runtime.core.kernel import open_kernel

    async with open_kernel() as one, open_kernel() as two:
        one.plugin(provider("p", "shared"))
        waiting = two.plugin(Plugin("c", inject=["shared"]))
        await settled(one)
        await settled(two)
        assert (waiting.state, one.get("shared")) == (State.PENDING, "value")


def test_a_second_kernel_in_one_process_starts_afresh() -> None:
    from dsh_runtime.core.kernel import open_kernel

    async def use() -> list[State]:
        async with open_kernel() as ctx:
            fiber = ctx.plugin(provider("p", "service"))
            await settled(ctx)
            return states(fiber)

    assert trio.run(use) == trio.run(use) == [State.ACTIVE]


async def test_a_plugin_may_open_a_kernel_of_its_own_and_wait_in_it(root: Context) -> None:
    from dsh_runtime.core.kernel import open_kernel

    log = Log()
    gate = Gate()

    async def apply(ctx: Context) -> None:
        async with open_kernel() as inner:
            fiber = inner.plugin(log.plugin("inner"))
            await fiber.wait()
            gate.reached.set()

    root.plugin(Plugin("outer", apply))
    root.plugin(log.plugin("next"))
    await settled(root)
    assert log == ["+inner", "-inner", "+next"]
