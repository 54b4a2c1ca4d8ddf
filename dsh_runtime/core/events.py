"""Events: which there are, who listens, and how a listener list is run.

pluggy checks what is registered; it does not dispatch. The lists are ours: sorted by :attr:`Entry.order`, resolved
once per change, run by :func:`emit` and :func:`waterfall` (the tools pipeline has runners of its own).
"""

from __future__ import annotations

import difflib
import functools
import inspect
import logging
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import pluggy
from attrs import frozen
from dsh_hookspecs import EventInfo, event_name, hook_name
from dsh_hookspecs import specs as host_specs

from dsh_runtime.core.effects import is_ordinary
from dsh_runtime.core.errors import HookError

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber
    from dsh_runtime.core.ledger import Ledger

_log = logging.getLogger("dsh.events")

FIRST, ORDINARY, LAST = -1, 0, 1


@frozen(eq=False)
class Event:
    """A declared event: its info, the arguments of its listeners, and what pluggy says when one is taken up."""

    info: EventInfo
    hook: str
    arguments: tuple[str, ...]
    warn_on_impl: Warning | None = None
    warn_on_impl_args: Mapping[str, Warning] | None = None


@frozen(eq=False)
class Listener:
    """A function that listens, with the plugin that registered it. ``call`` takes all arguments of the event."""

    call: Callable[..., Any]
    function: Callable[..., Any]
    event: str
    plugin: str
    fiber: Fiber
    scoped: bool = True

    @functools.cached_property
    def name(self) -> str:
        """The listener's own name; each note of a call has it."""
        return describe_function(self.function)[0]

    @property
    def where(self) -> str:
        """``plugin 'gate', listener check (gate.py:12)``, for messages."""
        name, place = describe_function(self.function)
        return f"plugin {self.plugin!r}, listener {name}{place}"


def describe_function(function: Callable[..., Any]) -> tuple[str, str]:
    """A function's own name, and `` (gate.py:12)`` where it has a place."""
    target: Any = inspect.unwrap(function)
    target = target.func if isinstance(target, functools.partial) else target
    code = getattr(target, "__code__", None)
    place = f" ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})" if code else ""
    return getattr(target, "__qualname__", None) or f"{target!r:.200}", place


class Declaration:
    """The hookspecs of one module or class, in force in a table for as long as their plugin is loaded."""

    def __init__(self, namespace: Any, fiber: Fiber | None) -> None:
        self.namespace = namespace
        self.fiber = fiber
        self.events = _events_of(namespace)
        self.table: EventTable | None = None

    def undo(self) -> None:
        """Take the events out of the table that they are in."""
        if self.table is not None:
            self.table.drop(self)


class EventTable:
    """The declared events by name, and the resolved listener lists."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._events: dict[str, Event] = {}
        self._declared: dict[Declaration, None] = {}
        self._manager: pluggy.PluginManager | None = None
        self._resolved: dict[tuple[str, tuple[Hashable, ...]], tuple[Listener, ...]] = {}
        self._resolved_at = -1

    @classmethod
    def of_host(cls, ledger: Ledger) -> EventTable:
        """A table with the host's own events."""
        table = cls(ledger)
        table.declare(host_specs)
        return table

    def beside(self, ledger: Ledger) -> EventTable:
        """A table of its own that has these events, too."""
        table = EventTable(ledger)
        table._declared = dict(self._declared)
        table._events = dict(self._events)
        table._manager = self._manager
        return table

    def declare(self, namespace: Any, fiber: Fiber | None = None) -> Callable[[], None]:
        """Declare every hookspec of a module or class; give back the undo."""
        declaration = Declaration(namespace, fiber)
        if not declaration.events:
            raise HookError(f"{namespace!r} declares no event; mark functions with @hookspec(mode=…)")
        self._check_free(declaration, {})
        self._put(declaration)
        return declaration.undo

    def drop(self, declaration: Declaration) -> None:
        """Take events out; what is out already stays out."""
        if declaration in self._declared:
            self._remove(declaration)
            declaration.table = None

    def hide(self, fibers: Collection[Fiber]) -> None:
        """Be without the events that some fibers have declared elsewhere."""
        for declaration in [one for one in self._declared if one.fiber in fibers and one.table is not self]:
            self._remove(declaration)

    def declarers(self) -> dict[str, Fiber | None]:
        """Which fiber has declared each event; ``None`` for the host's own."""
        return {event.info.name: one.fiber for one in self._declared for event in one.events}

    def check_mergeable(self, staged: EventTable, replaces: Collection[Fiber]) -> None:
        """Raise if an event of ``staged`` is meanwhile declared by a fiber that is not replaced."""
        leaving = {event.info.name: event for one in self._declared if one.fiber in replaces for event in one.events}
        for declaration in staged._own():
            self._check_free(declaration, leaving)

    def merge(self, staged: EventTable, replaces: Collection[Fiber]) -> None:
        """Put the events that ``staged`` has declared in the place of those of some fibers."""
        for declaration in [one for one in self._declared if one.fiber in replaces]:
            self.drop(declaration)
        for declaration in staged._own():
            self._put(declaration)

    def _own(self) -> list[Declaration]:
        return [declaration for declaration in self._declared if declaration.table is self]

    def _remove(self, declaration: Declaration) -> None:
        del self._declared[declaration]
        for event in declaration.events:
            del self._events[event.info.name]
        self._manager = None

    def _put(self, declaration: Declaration) -> None:
        self._events.update({event.info.name: event for event in declaration.events})
        self._declared[declaration] = None
        declaration.table = self
        self._manager = None

    def _check_free(self, declaration: Declaration, leaving: Mapping[str, Event]) -> None:
        events = {name: event for name, event in self._events.items() if name not in leaving}
        hooks = {event.hook: name for name, event in events.items()}
        for event in declaration.events:
            name = event.info.name
            if name in events:
                raise HookError(f"event {name!r} is declared twice; rename the second one")
            if event.hook in hooks:
                raise HookError(f"events {hooks[event.hook]!r} and {name!r} share the hook {event.hook!r}; rename one")

    def get(self, name: str, plugin: str) -> Event:
        """The event of a name; an unknown one is an error that names the plugin and the nearest event."""
        event = self._events.get(name)
        if event is None:
            raise HookError(_unknown(f"listens to {name!r}", name, self._events, plugin))
        return event

    def names(self) -> tuple[str, ...]:
        """Every declared event."""
        return tuple(self._events)

    def hooks(self) -> tuple[str, ...]:
        """The hook of every declared event."""
        return tuple(self._by_hook())

    def listener(self, name: str, function: Callable[..., Any], fiber: Fiber, *, warn: bool = True) -> Listener:
        """Check a function against its event and make a listener of it."""
        event = self.get(name, fiber.id)
        if not callable(function):
            raise HookError(f"plugin {fiber.id!r} gives {function!r} as listener of {name!r}; give a function")
        taken = _arguments_of(function, event, fiber.id)
        self._check_sync(event, function, fiber.id)
        if warn:
            _warn(event, taken)
        call = _adapt(function, taken, event.arguments)
        return Listener(call, function, name, fiber.id, fiber, event.info.scoped)

    def carrier_listeners(self, hooks: Mapping[str, Callable[..., Any]], fiber: Fiber) -> list[tuple[Listener, int]]:
        """The ``@hookimpl`` functions of a plugin as listeners with their bands, checked by pluggy."""
        for attribute, function in hooks.items():
            self._check_known(attribute, function, fiber.id)
        known = {name: fn for name, fn in hooks.items() if hook_of(name, fn) in self._by_hook()}
        for attribute, function in known.items():
            # Before pluggy, whose message knows neither the plugin nor the nearest name.
            _arguments_of(function, self._by_hook()[hook_of(attribute, function)], fiber.id)
        self._verify(known, fiber.id)
        listeners = []
        for attribute, function in known.items():
            event = self._by_hook()[hook_of(attribute, function)]
            options = _options(function)
            band = FIRST if options.get("tryfirst") else LAST if options.get("trylast") else ORDINARY
            # pluggy has given the warnings of deprecated hooks and arguments.
            listeners.append((self.listener(event.info.name, function, fiber, warn=False), band))
        return listeners

    def check_unmarked(self, source: Any, plugin: str) -> None:
        """Raise if a plugin has a function with a hook's name and no marker: policy that nobody would hear."""
        for hook in self._by_hook():
            function = getattr(source, hook, None)
            marked = hasattr(function, "dsh_impl") or hasattr(function, "dsh_spec")
            if inspect.isroutine(function) and not marked:
                raise HookError(
                    f"plugin {plugin!r} has a function {hook!r} that is not marked as a hook and would never be asked; "
                    "put @hookimpl above it, or rename it"
                )

    def listeners(self, name: str, scopes: tuple[Hashable, ...] = ()) -> tuple[Listener, ...]:
        """Who hears a dispatch of ``name`` for a scope and its ancestors (nearest first), in order."""
        version = self._ledger.version_of("on")
        if version != self._resolved_at:
            self._resolved.clear()
            self._resolved_at = version
        key = (name, scopes)
        found = self._resolved.get(key)
        if found is None:
            entries = self._ledger.resolve(listener_table(name), (None, *scopes))
            found = self._resolved[key] = tuple(entry.value for entry in entries)
        return found

    def forget_scope(self, scope: Hashable) -> None:
        """Keep no list, and so no trace, of a scope that has ended."""
        for key in [key for key in self._resolved if scope in key[1]]:
            del self._resolved[key]

    def _by_hook(self) -> dict[str, Event]:
        return {event.hook: event for event in self._events.values()}

    def _check_known(self, attribute: str, function: Callable[..., Any], plugin: str) -> None:
        options = _options(function)
        hook = hook_of(attribute, function)
        if options.get("wrapper") or options.get("hookwrapper"):
            raise HookError(
                f"plugin {plugin!r} marks {hook!r} as a hook wrapper, which is not supported; "
                "call next() in an ordinary listener of a waterfall"
            )
        if hook not in self._by_hook() and not options.get("optionalhook"):
            known = {event.hook: event for event in self._events.values()}
            raise HookError(_unknown(f"implements the hook {hook!r}", hook, known, plugin))

    def _verify(self, hooks: Mapping[str, Callable[..., Any]], plugin: str) -> None:
        """Let pluggy check names and arguments; the carrier is gone afterwards."""
        manager = self._pluggy()
        carrier = _Carrier(plugin)
        carrier.__dict__.update(hooks)
        try:
            manager.register(carrier, name=plugin)
        except pluggy.PluginValidationError as error:
            detail = " ".join(str(error).split())
            raise HookError(f"plugin {plugin!r} has a hook that does not fit its specification: {detail}") from error
        finally:
            if manager.is_registered(carrier):
                manager.unregister(carrier)

    def _pluggy(self) -> pluggy.PluginManager:
        if self._manager is None:
            self._manager = pluggy.PluginManager("dsh")
            for declaration in self._declared:
                self._manager.add_hookspecs(declaration.namespace)
        return self._manager

    @staticmethod
    def _check_sync(event: Event, function: Callable[..., Any], plugin: str) -> None:
        # An emit is sync, whether its specification says so or not.
        if (event.info.sync_only or event.info.mode == "emit") and is_async(function):
            raise HookError(
                f"plugin {plugin!r} listens to {event.info.name!r} with an async function, but its listeners are sync; "
                "hand the work to a task of the plugin (ctx.start_soon)"
            )


class _Carrier:
    """Holds one plugin's hookimpl functions while pluggy looks at them."""

    def __init__(self, plugin: str) -> None:
        self.__name__ = plugin


def listener_table(event: str) -> str:
    """The ledger's table that holds the listeners of an event."""
    return f"on:{event}"


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling ``function`` gives a coroutine, as far as its definition tells."""
    target = inspect.unwrap(function)
    while isinstance(target, functools.partial):
        target = target.func
    if inspect.iscoroutinefunction(target):
        return True
    return not inspect.isroutine(target) and inspect.iscoroutinefunction(getattr(target, "__call__", None))  # noqa: B004


def emit(listeners: Sequence[Listener], *args: Any) -> None:
    """Let every listener observe; what one raises is logged and harms nobody else.

    What nobody may contain (a keyboard interrupt) goes on when all have observed.
    """
    interrupt: BaseException | None = None
    for listener in listeners:
        try:
            outcome = listener.call(*args)
        except BaseException as error:
            if is_ordinary(error):
                _log.exception("%s failed on %r and is passed over", listener.where, listener.event)
            else:
                interrupt = error
            continue
        if outcome is not None and type(outcome) is CoroutineType:
            outcome.close()
            _log.error("%s answered %r with a coroutine, but its listeners are sync", listener.where, listener.event)
    if interrupt is not None:
        raise interrupt


async def waterfall(event: Event, listeners: Sequence[Listener], args: tuple[Any, ...], default: Any) -> Any:
    """Run a waterfall: each listener answers, or passes on what ``next()`` gives; the end of the chain is ``default``.

    ``args`` are the event's arguments without ``next``. Raises what a listener raises, and :class:`HookError` for an
    answer that is ``None`` or not of the event's type.
    """
    from dsh_runtime.core.chain import Chain

    chain = Chain(event, listeners, args, default)
    try:
        return await chain.run(0)
    finally:
        await chain.close()


def _events_of(namespace: Any) -> list[Event]:
    events = []
    for attribute in dir(namespace):
        function = getattr(namespace, attribute)
        info = getattr(function, "dsh_event", None)
        if not isinstance(info, EventInfo):
            continue
        if hook_name(info.name) != attribute:
            raise HookError(
                f"hookspec {attribute!r} declares the event {info.name!r}, whose hook is {hook_name(info.name)!r}; "
                f"rename one ({event_name(attribute)!r} fits the function)"
            )
        options = function.dsh_spec
        names = tuple(name for name in inspect.signature(function).parameters if name != "self")
        events.append(Event(info, attribute, names, options["warn_on_impl"], options["warn_on_impl_args"]))
    return events


def hook_of(attribute: str, function: Callable[..., Any]) -> str:
    """The hook that a marked function implements."""
    return str(_options(function).get("specname") or attribute)


def is_optional_hook(function: Callable[..., Any]) -> bool:
    """Whether a marked function is passed over where nobody declares its hook."""
    return bool(_options(function).get("optionalhook"))


def _options(function: Callable[..., Any]) -> dict[str, Any]:
    options: dict[str, Any] = getattr(function, "dsh_impl", None) or {}
    return options


def _arguments_of(function: Callable[..., Any], event: Event, plugin: str) -> tuple[str, ...]:
    """The event's arguments that a listener takes, in its own order."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise HookError(
            f"plugin {plugin!r} listens to {event.info.name!r} with {function!r}, whose arguments cannot be read; "
            "wrap it in a function"
        ) from None
    taken = []
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise HookError(
                f"plugin {plugin!r} listens to {event.info.name!r} with *args or **kwargs; "
                f"name the arguments it takes: {', '.join(event.arguments)}"
            )
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty:
            continue
        if name not in event.arguments:
            raise HookError(
                f"plugin {plugin!r} listens to {event.info.name!r} with the argument {name!r}, which its specification "
                f"does not have{_meant(name, event.arguments)}; it has: {', '.join(event.arguments)}"
            )
        if parameter.kind is parameter.KEYWORD_ONLY:
            raise HookError(f"plugin {plugin!r} takes {name!r} of {event.info.name!r} by keyword only; remove the '*'")
        taken.append(name)
    return tuple(taken)


def _adapt(function: Callable[..., Any], taken: tuple[str, ...], arguments: tuple[str, ...]) -> Callable[..., Any]:
    """A function of all the event's arguments that passes on those that the listener takes."""
    if taken == arguments:
        return function
    places = tuple(arguments.index(name) for name in taken)
    return lambda *args: function(*[args[place] for place in places])


def _warn(event: Event, taken: tuple[str, ...]) -> None:
    import warnings

    found = [event.warn_on_impl] if event.warn_on_impl is not None else []
    found += [warning for name, warning in (event.warn_on_impl_args or {}).items() if name in taken]
    for warning in found:
        warnings.warn(warning, stacklevel=4)


def _meant(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _unknown(what: str, name: str, known: Mapping[str, Any], plugin: str) -> str:
    return (
        f"plugin {plugin!r} {what}, which no hookspec declares{_meant(name, tuple(known))}; "
        f"declared are: {', '.join(sorted(known))}"
    )


def describe_answer(listener: Listener, event: EventInfo, answer: object) -> str:
    """Why an answer fails the dispatch closed, and what to return instead."""
    wanted = ", ".join(kind.__name__ for kind in event.returns) or "a value"
    return f"{listener.where} answered {event.name!r} with {answer!r:.200}; return one of {wanted}, or what next() gave"
