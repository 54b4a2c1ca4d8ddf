"""What every plugin keeps to, each as a check of one plugin. A check that fails says what is wrong, and where.

A check opens a host of its own, with the plugin, its companions, and what the check needs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import trio
import trio.testing
from attrs import field, frozen
from dsh_hookspecs import AbortController

from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.lifecycle import State
from dsh_runtime.loader.leftovers import describe_task, describe_thread, outliving, tasks, threads
from dsh_runtime.testing.arguments import arguments_for
from dsh_runtime.testing.asserts import tell
from dsh_runtime.testing.fakes import Denial
from dsh_runtime.testing.house import House, PluginLike, open_house
from dsh_runtime.tools.definition import ToolDefinition, ToolOutput

#: Real seconds after which something is taken to hang.
PATIENCE: Final = 10.0
PROBE: Final = "probe"
#: Arguments that a policy has to have an answer for.
ODD_ARGUMENTS: Final[tuple[Any, ...]] = (
    {},
    {"text": "x"},
    {"path": "../../etc/passwd", "command": "rm -rf /", "url": "file:///"},
    {"nested": {"deep": [{"key": None}]}, "": "", "ü\N{MAN}": [1.5, -0.0, 10**30]},
    [],
    "text",
    None,
)


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


@frozen
class Subject:
    """The plugin that is checked, what it needs beside it, and calls that it is used to (tool, arguments)."""

    plugin: PluginLike
    companions: tuple[PluginLike, ...] = ()
    calls: tuple[tuple[str, Any], ...] = ()
    #: Tools that are not called with generated arguments: they would do harm.
    never_generate: frozenset[str] = field(default=frozenset(), converter=_names)


class Probe:
    """A tool that notes that it has run."""

    name = "probe"
    inject = ("tools",)

    def __init__(self) -> None:
        self.ran = 0

    def apply(self, ctx: Any) -> None:
        """Register the tool."""
        output = ToolOutput(schema={})
        ctx.tools.register(ToolDefinition(PROBE, "Notes that it has run.", {"type": "object"}, output, self._execute))

    async def _execute(self, args: Any, exec: Any) -> str:
        self.ran += 1
        return "ran"


@asynccontextmanager
async def housed(subject: Subject, *behind: PluginLike, log: Path | bool = False) -> AsyncIterator[House]:
    """A host with the companions, the plugin, and what stands behind it."""
    async with open_house(*subject.companions, subject.plugin, *behind, log=log) as house:
        yield house


def plugin_fiber(house: House, subject: Subject) -> Fiber:
    """The fiber of the plugin that is checked: it stands behind the recorder and the companions."""
    loaded = [one for one in house.host.plugins if one.row is None and one.fiber is not None]
    fiber = loaded[1 + len(subject.companions)].fiber
    assert fiber is not None
    return fiber


async def a_denied_body_never_starts(subject: Subject) -> None:
    """A denial from behind the plugin, and one by a guard, stand, and no body begins."""
    probe = Probe()
    async with housed(subject, Denial(), probe) as house:
        for name, arguments in (*subject.calls, (PROBE, {})):
            result = await _within(house.call(name, arguments), f"the denied call of {name!r}")
            if not result.is_error:
                raise AssertionError(f"a call of {name!r} was denied behind the plugin, and came out as {tell(result)}")
        _never_ran(house, probe)
    async with housed(subject, probe) as house:
        house.ctx.tools.guard(lambda execution: "no")
        await _within(house.call(PROBE, {}), "the guarded call")
        _never_ran(house, probe)


def _never_ran(house: House, probe: Probe) -> None:
    if probe.ran or "tools/execute" in house.recorder.events():
        raise AssertionError(f"a body began although the call was denied; what was heard:\n{house.recorder.told()}")


async def policy_that_fails_behind_it_fails_the_call(subject: Subject) -> None:
    """A policy behind the plugin that raises, answers rubbish or hangs fails the call, whatever the plugin does."""
    for how, listener in {"raises": _raising, "answers rubbish": _rubbish, "hangs": _hanging}.items():
        probe = Probe()
        async with _with_timeout(subject, _Listener(listener), probe) as house:
            result = await _within(house.call(PROBE, {}), f"a call whose policy {how}")
            if not result.is_error or probe.ran:
                raise AssertionError(f"a policy behind the plugin {how}, and the call came out as {tell(result)}")


@asynccontextmanager
async def _with_timeout(subject: Subject, *behind: PluginLike) -> AsyncIterator[House]:
    plugins = (*subject.companions, subject.plugin, *behind)
    async with open_house(*plugins, config={"host": {"policy_timeout": 0.5}}) as house:
        yield house


class _Listener:
    name = "saboteur"

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn

    def apply(self, ctx: Any) -> None:
        ctx.on("tools/pre-execute", self._fn)


async def _raising(exec: Any, next: Any) -> Any:
    raise RuntimeError("sabotage")


async def _rubbish(exec: Any, next: Any) -> Any:
    return "allow"


async def _hanging(exec: Any, next: Any) -> Any:
    await trio.sleep_forever()


async def its_policy_has_an_answer_for_every_call(subject: Subject) -> None:
    """No call, however odd, makes a listener or guard of the plugin raise, hang or answer rubbish."""
    async with housed(subject, Probe()) as house:
        fiber = plugin_fiber(house, subject)
        for arguments in (*ODD_ARGUMENTS, *(given for _, given in subject.calls)):
            result = await _within(house.call(PROBE, arguments), f"a call with the arguments {arguments!r:.200}")
            info = result.error.info if result.is_error else None
            if info is not None and info.code == "LISTENER_FAILED" and info.plugin == fiber.id:
                raise AssertionError(f"for the arguments {arguments!r:.200} the plugin's policy failed: {tell(result)}")


async def unloading_leaves_nothing(subject: Subject) -> None:
    """When the plugin is unloaded, everything it has registered, begun and provided is gone, twice over."""
    async with open_house(*subject.companions) as house:
        kernel = house.host.ctx.fiber.kernel
        for _ in range(2):
            before = _registered(kernel), set(kernel.service_names()), threads(), tasks()
            inner, config = subject.plugin if isinstance(subject.plugin, tuple) else (subject.plugin, None)
            fiber = house.host.ctx.plugin(_object(inner), config)
            await _within(fiber.wait(), "loading the plugin")
            if fiber.state is not State.ACTIVE:
                raise AssertionError(f"the plugin is {fiber.state}; it waits for {', '.join(fiber.missing)}")
            for name, arguments in subject.calls:
                await _within(house.call(name, arguments), f"the call of {name!r}")
            try:
                await _within(_disposed(fiber), "unloading the plugin")
            except Exception as error:
                raise AssertionError(f"unloading the plugin failed: {error!r}") from error
            await _compare(kernel, before)


async def _disposed(fiber: Fiber) -> None:
    await fiber.dispose()


async def _compare(kernel: Any, before: tuple[Any, ...]) -> None:
    entries, services, earlier_threads, earlier_tasks = before
    left = [str(entry) for entry in _registered(kernel) - entries]
    left += [f"the service {name!r}" for name in set(kernel.service_names()) - services]
    left += [str(describe_thread(thread)) for thread in await outliving(earlier_threads)]
    await trio.testing.wait_all_tasks_blocked()
    theirs = (task for task in tasks() - earlier_tasks if "trio" not in task.name.partition(".")[0])
    left += [str(describe_task(task)) for task in theirs]
    if left:
        raise AssertionError("unloading the plugin leaves something behind:\n" + "\n".join(left))


def _registered(kernel: Any) -> set[Any]:
    return {entry for fiber in (kernel.root, *kernel.fibers) for entry in fiber.entries}


async def its_order_is_respected(subject: Subject) -> None:
    """All that the plugin registers is its own, so that it stands where the config has put it."""
    async with open_house(*subject.companions) as house:
        kernel = house.host.ctx.fiber.kernel
        before = _registered(kernel)
        inner, config = subject.plugin if isinstance(subject.plugin, tuple) else (subject.plugin, None)
        fiber = house.host.ctx.plugin(_object(inner), config)
        await _within(fiber.wait(), "loading the plugin")
        for entry in _registered(kernel) - before:
            if not _belongs(entry.fiber, fiber):
                raise AssertionError(
                    f"the plugin registers {entry.table} for {entry.fiber.id!r}, and not for itself; "
                    "register through the context that apply() is given"
                )


def _belongs(fiber: Any, owner: Fiber) -> bool:
    while fiber is not None:
        if fiber is owner:
            return True
        fiber = fiber.parent
    return False


async def it_survives_reload(subject: Subject) -> None:
    """A reload takes, and the same calls come out as before."""
    with _modules_put_back():
        await _survive_reload(subject)


@contextmanager
def _modules_put_back() -> Iterator[None]:
    """A reload makes fresh modules; the tests that follow have imported the old ones, and are to find them again."""
    before = dict(sys.modules)
    try:
        yield
    finally:
        sys.modules.update(before)


async def _survive_reload(subject: Subject) -> None:
    async with housed(subject, Probe()) as house:
        fiber = plugin_fiber(house, subject)
        before = [await _outcome(house, *call) for call in (*subject.calls, (PROBE, {}))]
        report = await _within(house.host.reload.plugins([fiber.id]), "the reload")
        if not report.ok:
            raise AssertionError("the plugin cannot be reloaded:\n" + "\n".join(report.lines()))
        await _within(house.host.reload.rest(), "the end of the old version")
        after = [await _outcome(house, *call) for call in (*subject.calls, (PROBE, {}))]
        if before != after:
            raise AssertionError(f"before the reload calls came out as {before}, and after it as {after}")


async def _outcome(house: House, name: str, arguments: Any) -> str | None:
    result = await _within(house.call(name, arguments), f"the call of {name!r}")
    if not result.is_error:
        return "success"
    return result.error.info.code if result.error.info is not None else None


async def it_survives_cancellation(subject: Subject) -> None:
    """A call that is aborted or cancelled comes to rest, and the next one is none the worse for it."""
    async with housed(subject, Probe()) as house:
        for name, arguments in (*subject.calls, (PROBE, {})):
            controller = AbortController()
            controller_signal = controller.signal
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_contained, house, name, arguments, controller_signal)
                await trio.testing.wait_all_tasks_blocked(0.01)
                controller.abort("given up by the check")
                with trio.move_on_after(PATIENCE) as limit:
                    await _emptied(nursery)
                if limit.cancelled_caught:
                    nursery.cancel_scope.cancel()
                    raise AssertionError(f"a call of {name!r} that was aborted had not come to rest after {PATIENCE} s")
            with trio.move_on_after(0.01):
                await house.call(name, arguments)
            await _within(house.call(PROBE, {}), f"a call after a cancelled call of {name!r}")


async def _contained(house: House, name: str, arguments: Any, signal: Any) -> None:
    await house.call(name, arguments, signal=signal)


async def _emptied(nursery: trio.Nursery) -> None:
    while nursery.child_tasks:  # noqa: ASYNC110 - nobody tells when a nursery is empty
        await trio.sleep(0.005)


async def its_tools_keep_to_their_schemas(subject: Subject, examples: int = 15) -> None:
    """Arguments that a tool's schema accepts are accepted, and what comes back is what it declares."""
    async with housed(subject) as house:
        fiber = plugin_fiber(house, subject)
        for schema in house.ctx.tools.schemas():
            name = schema["name"]
            if house.ctx.tools.owner(name) != fiber.id:
                continue
            for arguments in _generated(schema["parameters"], examples) if name not in subject.never_generate else ():
                await _keeps(house, name, arguments)
        for name, arguments in subject.calls:
            await _keeps(house, name, arguments)


async def _keeps(house: House, name: str, arguments: Any) -> None:
    result = await _within(house.call(name, arguments), f"a call of {name!r} with {arguments!r:.200}")
    code = result.error.info.code if result.is_error and result.error.info is not None else None
    if code in ("INVALID_ARGS", "INVALID_TOOL_OUTPUT"):
        raise AssertionError(f"tool {name!r} breaks its own schema for {arguments!r:.300}: {tell(result)}")


def _generated(schema: Any, number: int) -> list[Any]:
    """So many values for a schema, always the same ones."""
    from hypothesis import HealthCheck, Phase, given, settings

    found: list[Any] = []

    @settings(
        max_examples=number,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(arguments_for(schema))
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


async def denied_calls_are_on_record(subject: Subject) -> None:
    """With the plugin loaded, a denied call stands in the log with its result."""
    with tempfile.TemporaryDirectory(prefix="dsh-check-") as folder:
        async with housed(subject, Denial(), Probe(), log=Path(folder) / "log.db") as house:
            await _within(house.call(PROBE, {}), "the denied call")
            events = await house.on_record()
        results = [event["payload"] for event in events if event["type"] == "tool/result"]
        if not any("DENIED" in str(payload) for payload in results):
            found = results or [event["type"] for event in events]
            raise AssertionError(f"a denied call is not on record as denied; on record: {found}")


async def _within(waiting: Awaitable[Any], what: str) -> Any:
    """Await something that must not hang."""
    with trio.move_on_after(PATIENCE):
        return await waiting
    raise AssertionError(f"{what} had not ended after {PATIENCE:g} s")


def _object(plugin: PluginLike) -> Any:
    if not isinstance(plugin, str):
        return plugin
    from dsh_runtime.loader.model import PluginRow
    from dsh_runtime.loader.resolve import resolve_plugin

    return resolve_plugin(PluginRow(id=plugin, use=plugin))
