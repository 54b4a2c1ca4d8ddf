"""Contract 3: events - how they are declared and listened to, waterfalls, emits, and their failures."""

# ruff: noqa: A006  # listeners take what the hook interface calls exec and next

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
import trio
import trio.testing
from core_kit import Gate, Log, Plugin, Specs, settled

from dsh_runtime import Context, Fiber, HookError, ServiceError, State, hookimpl, hookspec


@pytest.fixture
def heard(root: Context) -> Log:
    """A log, on a root that has declared the tests' events."""
    root.add_hookspecs(Specs)
    return Log()


# Declaring and listening.


async def test_ctx_on_and_hookimpl_stand_in_one_table(root: Context, heard: Log) -> None:
    class Carrier:
        name = "carrier"

        @hookimpl
        def demo_seen(self, what: str) -> None:
            heard.append(f"hook {what}")

        def apply(self, ctx: Context) -> None:
            ctx.on("demo/seen", lambda what: heard.append(f"on {what}"))

    await root.plugin(Carrier()).wait()
    root.emit("demo/seen", "x", 1)
    assert heard == ["hook x", "on x"]


async def test_the_hook_of_an_event_is_its_name_with_underscores(root: Context, heard: Log) -> None:
    from dsh_hookspecs import event_name, hook_name

    assert (hook_name("tools/pre-execute"), event_name("tools_pre_execute")) == (
        "tools_pre_execute",
        "tools/pre-execute",
    )


@pytest.mark.parametrize(
    "fn",
    [lambda: None, lambda what: None, lambda more: None, lambda more, what: None, lambda what, more: None],
    ids=["none", "first", "second", "swapped", "both"],
)
async def test_a_listener_may_take_fewer_arguments_in_any_order(root: Context, heard: Log, fn: Any) -> None:
    got: list[Any] = []

    @functools.wraps(fn)
    def listener(*args: Any) -> None:
        got.append(args)

    root.on("demo/seen", listener)
    root.emit("demo/seen", "x", 1)
    assert got == [tuple({"what": "x", "more": 1}[name] for name in fn.__code__.co_varnames)]


async def test_an_unknown_event_is_an_error_that_names_the_plugin_and_the_one_meant(root: Context) -> None:
    with pytest.raises(
        HookError, match=r"plugin 'root' listens to 'tools/pre-exec', .*did you mean 'tools/pre-execute'"
    ):
        root.on("tools/pre-exec", lambda exec, next: next())


async def test_an_unknown_hook_is_an_error_that_names_the_plugin(root: Context) -> None:
    class Carrier:
        name = "carrier"

        @hookimpl
        def tools_pre_exec(self) -> None: ...

    with pytest.raises(HookError, match=r"plugin 'carrier' implements the hook 'tools_pre_exec'.*did you mean"):
        await root.plugin(Carrier()).wait()


async def test_an_unknown_argument_is_an_error_that_names_the_plugin_and_the_one_meant(
    root: Context, heard: Log
) -> None:
    with pytest.raises(HookError, match=r"plugin 'root' .* argument 'wat', .*did you mean 'what'\?.*what, more"):
        root.on("demo/seen", lambda wat: None)


async def test_an_unknown_argument_of_a_hookimpl_is_an_error_that_names_the_plugin(root: Context, heard: Log) -> None:
    class Carrier:
        name = "carrier"

        @hookimpl
        def demo_seen(self, wat: str) -> None: ...

    with pytest.raises(HookError, match=r"plugin 'carrier'.*wat"):
        await root.plugin(Carrier()).wait()


async def test_a_carrier_with_one_wrong_hook_registers_none_of_them(root: Context, heard: Log) -> None:
    class Carrier:
        name = "carrier"

        @hookimpl
        def demo_seen(self, what: str) -> None:
            heard.append(what)

        @hookimpl
        def demo_sen(self) -> None: ...

    with pytest.raises(HookError):
        await root.plugin(Carrier()).wait()
    root.emit("demo/seen", "x", 1)
    assert heard == []


async def test_a_refused_hook_does_not_spoil_the_next_plugins(root: Context, heard: Log) -> None:
    class Bad:
        @hookimpl
        def demo_seen(self, wat: str) -> None: ...

    class Good:
        @hookimpl
        def demo_seen(self, what: str) -> None:
            heard.append(what)

    for _ in range(3):
        with pytest.raises(HookError):
            await root.plugin(Bad()).wait()
    await root.plugin(Good()).wait()
    root.emit("demo/seen", "x", 1)
    assert heard == ["x"]


async def test_an_optional_hook_that_nobody_declares_is_passed_over(root: Context) -> None:
    class Carrier:
        @hookimpl(optionalhook=True)
        def nobody_has_this(self) -> None: ...

    fiber = root.plugin(Carrier())
    await fiber.wait()
    assert fiber.state is State.ACTIVE


async def test_a_hook_wrapper_is_refused_with_the_way_to_go(root: Context, heard: Log) -> None:
    class Carrier:
        name = "carrier"

        @hookimpl(wrapper=True)
        def demo_seen(self) -> Any:
            yield

    with pytest.raises(HookError, match=r"plugin 'carrier' .*hook wrapper.*call next\(\)"):
        await root.plugin(Carrier()).wait()


@pytest.mark.parametrize(
    "fn", [lambda *args: None, lambda **more: None, lambda *, what: None, lambda what, extra=None: None, 3, None]
)
async def test_a_listener_whose_arguments_do_not_fit_is_refused(root: Context, heard: Log, fn: Any) -> None:
    with pytest.raises(HookError, match="plugin 'root'"):
        root.on("demo/seen", fn)
    root.emit("demo/seen", "x", 1)


async def test_a_function_without_a_readable_signature_is_refused(root: Context, heard: Log) -> None:
    with pytest.raises(HookError, match="wrap it in a function"):
        root.on("demo/seen", type("Odd", (), {"__call__": dict.fromkeys, "__signature__": 3})())


async def test_a_plugin_can_add_hookspecs_of_its_own(root: Context) -> None:
    heard = Log()

    def apply(ctx: Context) -> None:
        ctx.add_hookspecs(Specs)
        ctx.on("demo/seen", lambda what: heard.append(what))
        ctx.emit("demo/seen", "x", 1)

    await root.plugin(apply).wait()
    assert heard == ["x"]


async def test_hookspecs_go_with_the_plugin_that_added_them(root: Context) -> None:
    fiber = root.plugin(Plugin("a", lambda ctx: ctx.add_hookspecs(Specs) and None))
    await fiber.wait()
    await fiber.dispose()
    with pytest.raises(HookError, match="no hookspec declares"):
        root.on("demo/seen", lambda: None)


async def test_an_event_declared_twice_is_refused(root: Context, heard: Log) -> None:
    with pytest.raises(HookError, match="'demo/ask' is declared twice; rename"):
        root.add_hookspecs(Specs)


async def test_two_events_that_share_a_hook_are_refused(root: Context, heard: Log) -> None:
    class Same:
        @staticmethod
        @hookspec(mode="emit", event="demo/see-n")
        def demo_see_n() -> None: ...

    class Other:
        @staticmethod
        @hookspec(mode="emit", event="demo/see_n")
        def demo_see_n() -> None: ...

    root.add_hookspecs(Same)
    with pytest.raises(HookError, match="share the hook 'demo_see_n'; rename one"):
        root.add_hookspecs(Other)


async def test_a_namespace_without_events_is_refused(root: Context) -> None:
    with pytest.raises(HookError, match="declares no event"):
        root.add_hookspecs(object())


async def test_a_hookspec_whose_function_and_event_differ_is_refused(root: Context) -> None:
    class Odd:
        @staticmethod
        @hookspec(mode="emit", event="other/name")
        def demo_name() -> None: ...

    with pytest.raises(HookError, match=r"rename one \('demo/name' fits"):
        root.add_hookspecs(Odd)


async def test_an_event_is_dispatched_in_its_own_mode_alone(root: Context, heard: Log) -> None:
    with pytest.raises(ServiceError, match="'demo/ask' is dispatched as emit, but declared as waterfall"):
        root.emit("demo/ask", "x")


class Old:
    @staticmethod
    @hookspec(mode="emit", warn_on_impl=DeprecationWarning("demo_old goes in 2.0"))
    def demo_old() -> None:
        """Deprecated as a whole."""

    @staticmethod
    @hookspec(mode="emit", warn_on_impl_args={"gone": DeprecationWarning("gone goes in 2.0")})
    def demo_args(gone: int, stays: int) -> None:
        """Has a deprecated argument."""


async def test_a_deprecated_hook_warns_whoever_listens_at_the_line_that_does(root: Context) -> None:
    root.add_hookspecs(Old)
    with pytest.warns(DeprecationWarning, match=r"demo_old goes in 2\.0") as caught:
        root.on("demo/old", lambda: None)
    assert len(caught) == 1 and caught[0].filename == __file__


async def test_a_deprecated_argument_warns_only_those_who_take_it(root: Context) -> None:
    root.add_hookspecs(Old)
    with pytest.warns(DeprecationWarning, match=r"gone goes in 2\.0"):
        root.on("demo/args", lambda gone: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        root.on("demo/args", lambda stays: None)


async def test_a_deprecated_hook_warns_a_hookimpl_once(root: Context) -> None:
    root.add_hookspecs(Old)

    class Carrier:
        @hookimpl
        def demo_old(self) -> None: ...

        @hookimpl
        def demo_args(self, gone: int) -> None: ...

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await root.plugin(Carrier()).wait()
    assert sorted(str(warning.message) for warning in caught) == ["demo_old goes in 2.0", "gone goes in 2.0"]


async def test_a_listener_list_is_resolved_once_per_change(root: Context, heard: Log) -> None:
    events = root.fiber.kernel.events
    undo = root.on("demo/seen", lambda: None)
    first = events.listeners("demo/seen")
    assert events.listeners("demo/seen") is first
    undo()
    assert events.listeners("demo/seen") == ()


async def test_registering_something_else_leaves_the_listener_lists(root: Context, heard: Log) -> None:
    events = root.fiber.kernel.events
    root.on("demo/seen", lambda: None)
    first = events.listeners("demo/seen")
    root.register("table", 1)
    assert events.listeners("demo/seen") is first


# Emit.


async def test_every_listener_runs_in_order(root: Context, heard: Log) -> None:
    for name in "abc":
        root.on("demo/seen", _append(heard, name))
    root.emit("demo/seen", "x", 1)
    assert heard == ["a", "b", "c"]


def _append(log: Log, name: str) -> Any:
    return lambda: log.append(name)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), ExceptionGroup("g", [ValueError()])], ids=repr)
async def test_an_exception_in_a_listener_is_logged_with_its_plugin_and_harms_nobody(
    root: Context, heard: Log, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def broken() -> None:
        raise error

    await root.plugin(Plugin("culprit", lambda ctx: ctx.on("demo/seen", broken))).wait()
    root.on("demo/seen", _append(heard, "behind"))
    root.emit("demo/seen", "x", 1)
    assert heard == ["behind"] and "plugin 'culprit', listener " in caplog.text and "broken" in caplog.text


async def test_a_keyboard_interrupt_in_a_listener_goes_on_when_all_have_observed(root: Context, heard: Log) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    root.on("demo/seen", interrupt)
    root.on("demo/seen", _append(heard, "behind"))
    with pytest.raises(KeyboardInterrupt):
        root.emit("demo/seen", "x", 1)
    assert heard == ["behind"]


class _AsyncCallable:
    async def __call__(self) -> None: ...


async def _async_listener() -> None: ...


@pytest.mark.parametrize("event", ["tools/result", "tools/change", "tools/progress", "plugin/state", "demo/seen"])
@pytest.mark.parametrize(
    "fn",
    [_async_listener, functools.partial(_async_listener), _AsyncCallable()],
    ids=["function", "partial", "object"],
)
async def test_an_async_listener_of_an_emit_is_refused_with_the_advice_to_use_a_task(
    root: Context, heard: Log, event: str, fn: Any
) -> None:
    with pytest.raises(HookError, match=r"plugin 'root' listens to .* async function.*ctx\.start_soon"):
        root.on(event, fn)


async def test_a_listener_that_gives_a_coroutine_all_the_same_is_logged_and_closed(
    root: Context, heard: Log, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    root.on("demo/seen", lambda: _async_listener())
    root.emit("demo/seen", "x", 1)
    assert "coroutine" in caplog.text and not recwarn.list


async def test_a_dispatch_runs_the_list_as_it_was_when_it_began(root: Context, heard: Log) -> None:
    def add() -> None:
        heard.append("first")
        root.on("demo/seen", _append(heard, "added"))

    root.on("demo/seen", add)
    root.emit("demo/seen", "x", 1)
    assert heard == ["first"]


# Waterfalls.


async def ask(ctx: Context, what: str = "?") -> Any:
    return await ctx.waterfall("demo/ask", what, default="default")


async def test_the_end_of_the_chain_is_the_default(root: Context, heard: Log) -> None:
    root.on("demo/ask", lambda next: next())
    assert await ask(root) == "default"


async def test_an_answer_ends_the_chain(root: Context, heard: Log) -> None:
    root.on("demo/ask", lambda: "mine")
    root.on("demo/ask", lambda: heard.append("behind") or "theirs")
    assert (await ask(root), heard) == ("mine", [])


async def test_a_listener_gets_the_arguments_and_next_and_may_change_the_answer(root: Context, heard: Log) -> None:
    async def wrap(what: str, next: Any) -> str:
        return f"{what}({await next()})"

    root.on("demo/ask", wrap)
    assert await ask(root, "x") == "x(default)"


async def test_the_first_is_the_outermost(root: Context, heard: Log) -> None:
    def wrapper(name: str) -> Any:
        async def wrap(next: Any) -> str:
            return f"{name}({await next()})"

        return wrap

    for name in "abc":
        root.on("demo/ask", wrapper(name))
    assert await ask(root) == "a(b(c(default)))"


async def test_a_plain_return_of_next_works_from_sync_and_async_listeners(root: Context, heard: Log) -> None:
    async def pass_on(next: Any) -> Any:
        return next()

    root.on("demo/ask", pass_on)
    root.on("demo/ask", lambda next: next())
    root.on("demo/ask", lambda: "answer")
    assert await ask(root) == "answer"


async def test_calling_next_again_runs_everything_downstream_again(root: Context, heard: Log) -> None:
    async def twice(next: Any) -> str:
        return f"{await next()}+{await next()}"

    def count() -> str:
        heard.append("ran")
        return str(len(heard))

    root.on("demo/ask", twice)
    root.on("demo/ask", lambda next: next())
    root.on("demo/ask", count)
    assert await ask(root) == "1+2"


async def test_each_next_belongs_to_its_position(root: Context, heard: Log) -> None:
    async def twice(next: Any) -> str:
        return f"[{await next()}{await next()}]"

    root.on("demo/ask", twice)
    root.on("demo/ask", twice)
    root.on("demo/ask", lambda: "x")
    assert await ask(root) == "[[xx][xx]]"


async def test_a_next_called_without_await_runs_nothing(root: Context, heard: Log) -> None:
    def drop(next: Any) -> str:
        next()
        return "mine"

    root.on("demo/ask", drop)
    root.on("demo/ask", lambda: heard.append("behind") or "theirs")
    assert (await ask(root), heard) == ("mine", [])


async def test_a_stage_ends_only_when_every_next_that_it_started_has_ended(root: Context, heard: Log) -> None:
    gate = Gate()

    async def slow() -> str:
        await gate.stop()
        heard.append("behind has ended")
        return "slow"

    async with trio.open_nursery() as nursery:

        async def hand_on(next: Any) -> str:
            nursery.start_soon(_await, next())
            await gate.reached.wait()
            return "mine"

        root.on("demo/ask", hand_on)
        root.on("demo/ask", slow)

        async def dispatch() -> None:
            heard.append(await ask(root))

        nursery.start_soon(dispatch)
        await gate.reached.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert heard == []
        gate.go.set()
    assert heard == ["behind has ended", "mine"]


async def _await(delegation: Any) -> None:
    await delegation


async def test_a_next_in_another_task_does_not_hold_a_cancelled_waterfall(
    root: Context, heard: Log, nursery: trio.Nursery, autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It has a few seconds to come to rest; then the log names who has let go of it, and nothing further runs."""

    async def lets_go(next: Any) -> str:
        nursery.start_soon(_await, next())
        await trio.sleep(1)
        return "mine"

    async def hangs(next: Any) -> Any:
        await trio.sleep(60)
        return await next()

    await root.plugin(Plugin("careless", lambda ctx: ctx.on("demo/ask", lets_go))).wait()
    root.on("demo/ask", hangs)
    root.on("demo/ask", lambda: heard.append("behind") or "late")
    with trio.move_on_after(3) as scope:
        await ask(root)
    assert scope.cancelled_caught
    assert trio.current_time() == pytest.approx(8)
    assert "plugin 'careless', listener" in caplog.text
    nursery.cancel_scope.cancel()
    assert heard == []


async def test_a_next_kept_and_called_afterwards_raises(root: Context, heard: Log) -> None:
    kept: list[Any] = []
    root.on("demo/ask", lambda next: kept.append(next) or "mine")
    await ask(root)
    with pytest.raises(HookError, match="after its stage has ended"):
        kept[0]()


async def test_a_next_called_before_and_awaited_afterwards_raises(root: Context, heard: Log) -> None:
    kept: list[Any] = []
    root.on("demo/ask", lambda next: kept.append(next()) or "mine")
    await ask(root)
    with pytest.raises(HookError, match="after its stage has ended"):
        await kept[0]


@pytest.mark.parametrize("answer", [None, 3, ["x"]])
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_no_answer_or_one_of_another_type_is_an_error_that_names_plugin_event_function_and_remedy(
    root: Context, heard: Log, answer: Any, kind: str
) -> None:
    def sync_listener() -> Any:
        return answer

    async def async_listener() -> Any:
        return answer

    chosen = sync_listener if kind == "sync" else async_listener
    await root.plugin(Plugin("culprit", lambda ctx: ctx.on("demo/ask", chosen))).wait()
    with pytest.raises(HookError) as caught:
        await ask(root)
    message = str(caught.value)
    for part in ("plugin 'culprit'", "'demo/ask'", chosen.__name__, "return one of str, or what next() gave"):
        assert part in message


async def test_what_a_listener_raises_comes_out_of_the_waterfall(root: Context, heard: Log) -> None:
    def broken() -> str:
        raise ValueError("no")

    root.on("demo/ask", broken)
    with pytest.raises(ValueError, match="no"):
        await ask(root)


async def test_a_waterfall_is_filtered_by_scope(root: Context, heard: Log) -> None:
    root.scope("s").ctx.on("demo/ask", lambda: "scoped")
    assert await root.waterfall("demo/ask", "?", default="d") == "d"
    assert await root.waterfall("demo/ask", "?", default="d", scope="s") == "scoped"


async def test_a_cancelled_waterfall_goes_on_as_cancelled(root: Context, heard: Log) -> None:
    gate = Gate()

    async def wait() -> str:
        await gate.stop()
        return "never"

    root.on("demo/ask", wait)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, root)
            await gate.reached.wait()
            scope.cancel()
    assert scope.cancelled_caught


# Whose they are.


async def test_a_listener_dies_with_its_plugin(root: Context, heard: Log) -> None:
    fiber = root.plugin(Plugin("a", lambda ctx: ctx.on("demo/seen", _append(heard, "a"))))
    await settled(root)
    await fiber.dispose()
    root.emit("demo/seen", "x", 1)
    assert heard == []


async def test_the_undo_of_a_listener_is_of_exactly_that_and_twice_is_once(root: Context, heard: Log) -> None:
    listener = _append(heard, "x")
    undo = root.on("demo/seen", listener)
    root.on("demo/seen", listener)
    undo()
    undo()
    root.emit("demo/seen", "x", 1)
    assert heard == ["x"]


async def test_the_state_of_a_fiber_is_told_with_the_one_before(root: Context) -> None:
    seen: list[Any] = []

    def watch(fiber: Fiber, previous: str) -> None:
        seen.append((fiber.id, previous, fiber.state))

    root.on("plugin/state", watch)
    await root.plugin(Plugin("a")).wait()
    assert seen == [("a", "pending", "loading"), ("a", "loading", "active")]
