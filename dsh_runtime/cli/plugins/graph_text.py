"""A graph as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsh_runtime.cli.plugins.graph import HOST, EventPoint, Graph, PluginPoint, ServicePoint
from dsh_runtime.cli.text import Part

NOBODY = "nobody"


def text_lines(graph: Graph) -> Iterator[list[Part]]:
    """The graph, one line after the other, each in parts with their styles."""
    yield [("plugins", "bold"), ", in order"]
    yield from _plugin_lines(graph.plugins)
    yield [""]
    yield [("services", "bold"), ": who provides it, who injects it (? is optional)"]
    yield from _service_lines(graph.services)
    yield [""]
    yield [("listeners", "bold"), ", the first one outermost"]
    if not graph.events:
        yield ["      nobody listens"]
    for event in graph.events:
        yield from _event_lines(event)


def _plugin_lines(plugins: Sequence[PluginPoint]) -> Iterator[list[Part]]:
    widest = _widest(plugin.id for plugin in plugins)
    states = _widest(plugin.state for plugin in plugins)
    for number, plugin in enumerate(plugins, start=1):
        state = (plugin.state.ljust(states if plugin.tools else 0), "green" if plugin.state == "active" else "red")
        tools = f"  offers {', '.join(plugin.tools)}" if plugin.tools else ""
        yield [f"{number:4}  ", (plugin.id.ljust(widest), "cyan"), "  ", state, tools]


def _service_lines(services: Sequence[ServicePoint]) -> Iterator[list[Part]]:
    widest = _widest(service.name for service in services)
    owners = _widest(service.provider or NOBODY for service in services)
    for service in services:
        owner = service.provider or NOBODY
        style = "dim" if owner == HOST else "cyan" if service.provider else "red"
        users = ", ".join(use.plugin if use.required else f"{use.plugin}?" for use in service.users)
        arrow = f"  <-  {users}" if users else ""
        yield ["      ", service.name.ljust(widest), "  ", (owner.ljust(owners if users else 0), style), arrow]


def _event_lines(event: EventPoint) -> Iterator[list[Part]]:
    yield ["  ", event.name, (f"  ({event.mode})", "dim")]
    widest = _widest(listener.plugin for listener in event.listeners)
    for number, listener in enumerate(event.listeners, start=1):
        band = f"  [{listener.band}]" if listener.band else ""
        yield [f"{number:4}  ", (listener.plugin.ljust(widest), "cyan"), "  ", (listener.function, "dim"), band]


def _widest(words: Iterator[str]) -> int:
    return max(map(len, words), default=0)
