"""What is checked, and the hosts in which it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio
from attrs import define, field, frozen
from dsh_hookspecs import ToolExecutionResult

from dsh_runtime.core.fiber import Fiber
from dsh_runtime.testing.asserts import tell
from dsh_runtime.testing.calls import Call, CallLike
from dsh_runtime.testing.trial import PluginLike, Trial, loadable, open_trial
from dsh_runtime.tools.definition import ToolDefinition, ToolOutput


@define
class Patience:
    """Real seconds, of which tests of the checks themselves have less."""

    #: After these something is taken to hang.
    seconds: float = 10.0
    #: So many has what was told to end.
    grace: float = 1.0


PATIENCE: Final = Patience()
#: The stages at which a plugin can decide about a call.
STAGES: Final = ("tools/pre-execute", "tools/execute", "tools/post-execute")
PROBE: Final = Call("probe", {"text": "x"})


def _calls(calls: Iterable[CallLike]) -> tuple[Call, ...]:
    return tuple(Call(*call) for call in calls)


def _plugins(plugins: Iterable[PluginLike]) -> tuple[PluginLike, ...]:
    return tuple(plugins)


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


@frozen
class Subject:
    """The plugin that is checked, what it needs beside it, and examples of calls."""

    plugin: PluginLike
    companions: tuple[PluginLike, ...] = field(default=(), converter=_plugins)
    #: Calls that succeed.
    calls: tuple[Call, ...] = field(default=(), converter=_calls)
    #: Calls that the plugin itself denies, once ``calls`` have been made. What tools they name need not exist.
    denies: tuple[Call, ...] = field(default=(), converter=_calls)
    #: Tools that are not called with generated arguments: they would do harm.
    never_generate: frozenset[str] = field(default=frozenset(), converter=_names)

    @property
    def usual(self) -> tuple[Call, ...]:
        """The calls that succeed, and one that nobody has thought of."""
        return (*self.calls, PROBE)


class Neighbour:
    """Listens at every stage, and changes nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def apply(self, ctx: Any) -> None:
        """Listen."""
        for stage in STAGES:
            ctx.on(stage, self._pass_on)

    def _pass_on(self, next: Any) -> Any:
        return next()


class Probe:
    """Stands in for the tools that nobody else brings. It is loaded last, and knows what is there."""

    name = "probe"
    inject = ("tools",)

    def __init__(self, tools: Iterable[str] = ()) -> None:
        self._tools = dict.fromkeys((PROBE.name, *tools))

    def apply(self, ctx: Any) -> None:
        """Register what is missing."""
        for name in self._tools:
            if ctx.tools.get(name) is None:
                output = ToolOutput(schema={"type": "string"})
                parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
                ctx.tools.register(ToolDefinition(name, "Says that it has run.", parameters, output, self._execute))

    async def _execute(self, args: Any, exec: Any) -> str:
        await trio.lowlevel.checkpoint()
        return "ran"


@asynccontextmanager
async def tried(
    subject: Subject,
    *,
    front: Iterable[PluginLike] = (),
    behind: Iterable[PluginLike] = (),
    settings: Mapping[str, Any] | None = None,
    log: Path | bool = False,
) -> AsyncIterator[Trial]:
    """A host with the companions, what stands in front, the plugin, what stands behind it, and all tools it names."""
    named = [call.name for call in (*subject.calls, *subject.denies)]
    plugins = [*subject.companions, *front, subject.plugin, *behind, Probe(named)]
    config = {"host": dict(settings)} if settings else None
    async with open_trial(*plugins, config=config, log=log) as trial:
        yield trial


def fiber_of(trial: Trial, subject: Subject, front: int = 0) -> Fiber:
    """The fiber of the plugin that is checked."""
    return trial.fiber(trial.ids[len(subject.companions) + front])


async def mounted(trial: Trial, subject: Subject) -> Fiber:
    """Load the plugin into a host that is open already."""
    from dsh_runtime.core.lifecycle import State
    from dsh_runtime.loader.host import waiting_text

    given = loadable(subject.plugin)
    inner, config = given if isinstance(given, tuple) else (given, None)
    fiber = trial.host.ctx.plugin(inner, config)
    await within(fiber.wait(), "loading the plugin")
    if fiber.state is not State.ACTIVE:
        raise AssertionError(f"the plugin cannot be loaded: {waiting_text(fiber)}")
    return fiber


async def made(trial: Trial, call: CallLike, what: str = "") -> ToolExecutionResult:
    """Make a call, which must not hang."""
    result: ToolExecutionResult = await within(trial.call(call), what or f"the call {Call(*call)}")
    return result


async def within(waiting: Awaitable[Any], what: str) -> Any:
    """Await something that must not hang."""
    with trio.move_on_after(PATIENCE.seconds):
        return await waiting
    raise AssertionError(f"{what} had not come to rest after {PATIENCE.seconds:g} s")


def has_begun(trial: Trial, tool: str) -> bool:
    """Whether a body of a tool, or what wraps it, has begun."""
    return "tools/execute" in trial.recorder.events(tool)


def refused(trial: Trial, call: Call, result: ToolExecutionResult, why: str) -> None:
    """Raise unless a call has failed before its body."""
    if not result.is_error:
        raise AssertionError(f"{why}, and the call {call} came out as {tell(result)}")
    if has_begun(trial, call.name):
        raise AssertionError(f"{why}, and the body of the call {call} began; what was heard:\n{trial.recorder.told()}")
