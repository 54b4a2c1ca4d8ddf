"""How the plugins of a running host hang together: read off the host, as values that can be drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, frozen
from dsh_hookspecs import EventInfo, specs

from dsh_runtime.core.events import FIRST, LAST, Listener, describe_function, listener_table
from dsh_runtime.core.services import SERVICE
from dsh_runtime.tools.registry import GUARD, TOOL, Guard

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber
    from dsh_runtime.core.kernel import Kernel
    from dsh_runtime.core.ledger import Entry
    from dsh_runtime.loader.host import Host

HOST: Final = "host"
"""What stands for the host itself, where plugins are named."""
GUARDS: Final = "guards"
_BANDS: Final = {FIRST: "first", LAST: "last"}


@frozen
class PluginPoint:
    """A plugin: its state, and the tools that it offers to everybody."""

    id: str
    state: str
    tools: list[str]


@frozen
class ServiceUse:
    """A plugin that injects a service; ``required`` ones wait until it is there."""

    plugin: str
    required: bool


@frozen
class ServicePoint:
    """A service: who provides it (``None``: nobody), and who injects it."""

    name: str
    provider: str | None
    users: list[ServiceUse]


@frozen
class ListenerPoint:
    """A listener of an event, or a guard: its plugin, its function with the place, and its band unless ordinary."""

    plugin: str
    function: str
    band: str | None = None


@frozen
class EventPoint:
    """An event that somebody listens to, with its listeners in the order in which they are heard."""

    name: str
    mode: str
    listeners: list[ListenerPoint]


@frozen
class Graph:
    """Plugins in order, services by name, events in the order of the pipeline."""

    plugins: list[PluginPoint]
    services: list[ServicePoint]
    events: list[EventPoint]

    def document(self) -> dict[str, Any]:
        """The graph as JSON."""
        return asdict(self)


def graph_of(host: Host) -> Graph:
    """The graph of a host, as it is now and for everybody: what is registered for one agent alone is not in it."""
    kernel = host.ctx.fiber.kernel
    fibers = sorted(kernel.fibers, key=lambda fiber: fiber.path)
    unloaded = [PluginPoint(plugin.id, "not loaded", []) for plugin in host.plugins if plugin.fiber is None]
    return Graph(
        plugins=[*(_plugin(kernel, fiber) for fiber in fibers), *unloaded],
        services=list(_services(kernel, fibers)),
        events=[event for event in _events(kernel) if event.listeners],
    )


def _plugin(kernel: Kernel, fiber: Fiber) -> PluginPoint:
    tools = sorted(str(entry.key) for entry in kernel.ledger.group(TOOL, None) if entry.fiber is fiber)
    return PluginPoint(fiber.id, str(fiber.state), tools)


def _services(kernel: Kernel, fibers: Iterable[Fiber]) -> Iterator[ServicePoint]:
    fibers = list(fibers)
    providers = {str(entry.key): _owner(entry) for entry in kernel.ledger.group(SERVICE, None)}
    wanted = {name for fiber in fibers for name in fiber.spec.inject}
    for name in sorted(providers.keys() | wanted):
        users = [ServiceUse(fiber.id, fiber.spec.inject[name]) for fiber in fibers if name in fiber.spec.inject]
        yield ServicePoint(name, providers.get(name), users)


def _events(kernel: Kernel) -> Iterator[EventPoint]:
    """The events in the order of their specifications, the guards behind the stage that they follow."""
    order = {info.name: number for number, info in enumerate(_declared())}
    for name in sorted(kernel.events.names(), key=lambda name: order.get(name, len(order))):
        entries = kernel.ledger.resolve(listener_table(name), (None,))
        mode = kernel.events.get(name, HOST).info.mode
        yield EventPoint(name, mode, [_listener(entry, entry.value) for entry in entries])
        if name == "tools/pre-execute":
            guards = kernel.ledger.resolve(GUARD, (None,))
            yield EventPoint(GUARDS, "can only deny", [_guard(entry, entry.value) for entry in guards])


def _declared() -> Iterator[EventInfo]:
    for value in vars(specs).values():
        info = getattr(value, "dsh_event", None)
        if isinstance(info, EventInfo):
            yield info


def _listener(entry: Entry, listener: Listener) -> ListenerPoint:
    return ListenerPoint(_owner(entry), _name(listener.function), _BANDS.get(entry.band))


def _guard(entry: Entry, guard: Guard) -> ListenerPoint:
    return ListenerPoint(_owner(entry), _name(guard.check))


def _name(function: Callable[..., Any]) -> str:
    """A function's own name, with its place; not those of the functions around it."""
    name, place = describe_function(function)
    return name.rpartition("<locals>.")[2] + place


def _owner(entry: Entry) -> str:
    return HOST if entry.fiber.is_root else entry.fiber.id
