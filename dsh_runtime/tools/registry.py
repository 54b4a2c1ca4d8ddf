"""The registry: which tools, restrictions, guards and presentation modes there are, and who sees which.

One resolver answers for display, look-up and dispatch. A name belongs to the nearest layer that has registered it;
the restrictions of the scopes between that layer and the viewer may hide it, and then nothing above shows through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from attrs import frozen
from dsh_hookspecs import (
    HarnessError,
    JsonSchemaError,
    JsonValue,
    JsonValueError,
    ToolExecution,
    ToolExecutionResult,
)

from dsh_runtime.core.events import describe_function
from dsh_runtime.core.ledger import Entry, Ledger
from dsh_runtime.tools.body import make_runner
from dsh_runtime.tools.definition import RESERVED_NAMES, ToolDefinition, ToolOutput
from dsh_runtime.values import assert_supported_json_schema, compile_schema, snapshot_json

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context
    from dsh_runtime.core.fiber import Fiber

TOOL: Final = "tool"
RESTRICTION: Final = "restriction"
GUARD: Final = "guard"
MODE: Final = "presentation"
JOURNAL: Final = "journal"

PresentationMode: TypeAlias = Literal["native", "code", "both"]
MODES: Final = ("native", "code", "both")


class ToolRegistrationError(HarnessError):
    """A tool, restriction, guard or presentation mode cannot be registered as it is."""

    default_code = "TOOL_INVALID"


class RegisteredTool:
    """A definition in force: its owner, its compiled output schema, and how its body is run."""

    __slots__ = ("definition", "fiber", "name", "output", "plugin", "run")

    def __init__(self, definition: ToolDefinition, fiber: Fiber) -> None:
        self.definition = definition
        self.name = definition.name
        self.fiber = fiber
        self.plugin = fiber.id
        # Compiled from a copy: the pass itself is generated on first use.
        self.output = compile_schema(definition.output.schema)
        self.run = make_runner(definition.execute)


@frozen(eq=False)
class Restriction:
    """A scope's filter over the tools that it inherits."""

    allow: frozenset[str] | None
    deny: frozenset[str]

    def admits(self, name: str) -> bool:
        """Whether an inherited tool of this name stays visible."""
        return name not in self.deny and (self.allow is None or name in self.allow)


@frozen(eq=False)
class Guard:
    """A policy that can only take permission away."""

    check: Callable[[Any], Any]
    plugin: str
    fiber: Fiber

    @property
    def where(self) -> str:
        """``plugin 'night', guard closed_orders (night.py:4)``, for messages."""
        name, place = describe_function(self.check)
        return f"plugin {self.plugin!r}, guard {name}{place}"


class Journal(Protocol):
    """What keeps the record of calls. What it raises refuses the call, or withholds its result.

    Both are async as a rule; where there is nothing to wait for, they may do it at once and return ``None``.
    """

    def called(self, exec: ToolExecution) -> Coroutine[Any, Any, None] | None:
        """A call has entered: put it on record before any policy sees it."""

    def finished(
        self, exec: ToolExecution, result: ToolExecutionResult, story: Sequence[dict[str, JsonValue]] | None
    ) -> Coroutine[Any, Any, None] | None:
        """A call has its final result: put it on record, with its story, before anybody hears of it."""


def check_definition(definition: Any, owner: str) -> None:
    """Raise unless ``definition`` can be registered; everything is looked at before anything is changed."""
    if not isinstance(definition, ToolDefinition):
        raise ToolRegistrationError(
            f"plugin {owner!r} registers {definition!r:.200} as a tool; "
            "make a ToolDefinition with define_tool() or @tool"
        )
    subject = f"tool {definition.name!r} of plugin {owner!r}"
    _check_shown(definition, subject)
    if definition.name in RESERVED_NAMES:
        raise ToolRegistrationError(f"{subject} has a reserved name; rename it")
    _check_output(definition.output, subject)
    _check_timeout(definition.timeout, subject)
    _check_callables(definition, subject)


def _check_shown(definition: ToolDefinition, subject: str) -> None:
    """What models and clients are shown goes out as JSON, so it has to be some."""
    wanted = (("name", str, "a text"), ("description", str, "a text"), ("parameters", dict, "a JSON Schema"))
    for what, kind, noun in wanted:
        value = getattr(definition, what)
        if not isinstance(value, kind):
            raise ToolRegistrationError(f"{subject} gives {type(value).__name__} as {what}; give {noun}")
        _check_json(value, what, subject)
    if type(definition.idempotent) is not bool:
        raise ToolRegistrationError(f"{subject} has idempotent = {definition.idempotent!r}; give True or False")


def _check_json(value: Any, what: str, subject: str) -> None:
    try:
        snapshot_json(value, path=what)
    except JsonValueError as error:
        raise ToolRegistrationError(f"{subject} gives as {what} what is no lossless JSON: {error}") from None


def _check_output(output: Any, subject: str) -> None:
    if not isinstance(output, ToolOutput):
        raise ToolRegistrationError(f"{subject} declares no output; give output=ToolOutput(schema=…, render=…)")
    for what in ("render", "presentation_meta"):
        function = getattr(output, what)
        if function is not None and not callable(function):
            raise ToolRegistrationError(f"{subject} has an output whose {what} is no function: {function!r}")
    if output.relayed is not None:
        _check_json(output.relayed, "relayed output schema", subject)
    try:
        assert_supported_json_schema(output.schema)
    except JsonSchemaError as error:
        raise JsonSchemaError(f"{subject} has an output schema outside the subset: {error}", error.violations) from None


def _check_timeout(timeout: Any, subject: str) -> None:
    if timeout is None:
        return
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not number or not math.isfinite(timeout) or timeout <= 0:
        raise ToolRegistrationError(f"{subject} has timeout = {timeout!r}; give seconds, positive and finite, or None")


def _check_callables(definition: ToolDefinition, subject: str) -> None:
    if not callable(definition.execute):
        raise ToolRegistrationError(f"{subject} has an execute that is no function: {definition.execute!r}")
    for what in ("finalize_content", "is_concurrency_safe", "present_call", "present_result"):
        function = getattr(definition, what)
        if function is not None and not callable(function):
            raise ToolRegistrationError(f"{subject} has a {what} that is no function: {function!r}")


class Resolver:
    """Answers who sees what, from the ledger. ``chain`` is a scope and its ancestors, nearest first.

    ``presentation`` is the mode of a scope where none has said so.
    """

    def __init__(self, ledger: Ledger, presentation: PresentationMode = "native") -> None:
        self._ledger = ledger
        self._presentation = presentation

    def over(self, ledger: Ledger) -> Resolver:
        """The same over another ledger."""
        return Resolver(ledger, self._presentation)

    def find(self, name: str, chain: Sequence[Hashable]) -> RegisteredTool | None:
        """The tool that ``name`` stands for, or ``None`` when none is visible."""
        if name in RESERVED_NAMES:
            return self._transport(name, chain)
        for distance, scope in enumerate((*chain, None)):
            entry = self._ledger.find(TOOL, scope, name)
            if entry is not None:
                return entry.value if self._admitted(name, chain[:distance]) else None
        return None

    def _transport(self, name: str, chain: Sequence[Hashable]) -> RegisteredTool | None:
        """A transport stands outside restrictions, and is there wherever programs are."""
        entry = self._ledger.find(TOOL, None, name)
        return entry.value if entry is not None and self.mode(chain) != "native" else None

    def visible(self, chain: Sequence[Hashable]) -> list[RegisteredTool]:
        """Every visible tool: the host's first, then each scope's from the root down, each in its order."""
        names: dict[str, None] = {}
        for scope in (None, *reversed(chain)):
            for entry in self._ledger.resolve(TOOL, (scope,)):
                names.setdefault(entry.value.name)
        found = (self.find(name, chain) for name in names)
        return [tool for tool in found if tool is not None]

    def inherited_names(self, chain: Sequence[Hashable]) -> set[str]:
        """The names that the nearest scope of ``chain`` inherits, before its own restrictions."""
        names = {entry.value.name for scope in (*chain[1:], None) for entry in self._ledger.group(TOOL, scope)}
        return names - RESERVED_NAMES

    def own_names(self, scope: Hashable) -> set[str]:
        """The names that one scope has registered itself."""
        return {entry.value.name for entry in self._ledger.group(TOOL, scope)}

    def guards(self, chain: Sequence[Hashable]) -> tuple[Guard, ...]:
        """The host's guards, then the chain's from the root down."""
        return tuple(
            entry.value for scope in (None, *reversed(chain)) for entry in self._ledger.resolve(GUARD, (scope,))
        )

    def journal(self) -> Entry | None:
        """The entry of the host's journal, if one is installed."""
        return self._ledger.find(JOURNAL, None, JOURNAL)

    def mode(self, chain: Sequence[Hashable]) -> PresentationMode:
        """How the nearest scope that has said so presents its tools, else the host."""
        for scope in chain:
            entry = self._ledger.find(MODE, scope, MODE)
            if entry is not None:
                return entry.value  # type: ignore[no-any-return]
        return self._presentation

    def _admitted(self, name: str, below: Iterable[Hashable]) -> bool:
        return all(entry.value.admits(name) for entry in self._restrictions(below))

    def _restrictions(self, scopes: Iterable[Hashable]) -> Iterator[Entry]:
        for scope in scopes:
            yield from self._ledger.group(RESTRICTION, scope)


def make_restriction(
    resolver: Resolver, ctx: Context, chain: Sequence[Hashable], allow: Sequence[str] | None, deny: Sequence[str] | None
) -> Restriction:
    """Check a filter against what the scope inherits; an error lists the names that it could have given."""
    known, own = resolver.inherited_names(chain), resolver.own_names(ctx.scope_key)
    inherited = f"inherited are: {', '.join(sorted(known)) or 'none'}"
    for what, names in (("allow", allow), ("deny", deny)):
        if isinstance(names, str):
            raise ToolRegistrationError(f"plugin {ctx.fiber.id!r} gives {what} = {names!r}; give a list of names")
    if not allow and not deny:
        raise ToolRegistrationError(
            f"plugin {ctx.fiber.id!r} gives an empty filter; name at least one tool in allow or deny; {inherited}"
        )
    for name in (*(allow or ()), *(deny or ())):
        if name in RESERVED_NAMES:
            problem = "is reserved and stands outside restrictions"
        elif name in known:
            continue
        elif name in own:
            problem = "is the scope's own tool, which restrictions do not touch"
        else:
            problem = "is unknown"
        raise ToolRegistrationError(f"plugin {ctx.fiber.id!r} restricts {name!r}, which {problem}; {inherited}")
    return Restriction(frozenset(allow) if allow is not None else None, frozenset(deny or ()))
