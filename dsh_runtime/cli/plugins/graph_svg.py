"""A graph as an SVG picture: services, plugins and events in three columns, with lines for what connects them.

Plugins stand in the middle, in their order. To the left are the services: a thick line leads to the one that provides
a service, thin ones to those that inject it, dashed where they can do without. To the right are the events, each a
box with its listeners in the order in which they are heard, from top to bottom.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from dsh_runtime.cli.plugins.graph import HOST, Graph, ListenerPoint, PluginPoint, ServicePoint
from dsh_runtime.cli.text import counted, shortened, visible

_WIDTH: Final = 1080
_ROW: Final = 24
_GAP: Final = 14
_TOP: Final = 70
_SERVICES: Final = (20, 200)
_PLUGINS: Final = (420, 220)
_EVENTS: Final = (760, 300)
_WIDE: Final = 8
_SMALL: Final = 6
"""About how much room a letter needs."""
_UNFIT: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold."""

_STYLE: Final = """\
text { font: 13px sans-serif; fill: #1c2733; }
.head { font-weight: bold; font-size: 15px; }
.dim { fill: #66727f; font-size: 11px; }
rect { fill: #f6f8fa; stroke: #8794a1; }
.active { fill: #e3f3e6; stroke: #4f8a5b; }
.off { fill: #fbe5e3; stroke: #b5483c; }
path { fill: none; stroke: #8794a1; stroke-width: 1; }
.gives { stroke: #4f8a5b; stroke-width: 2.5; }
.may { stroke-dasharray: 4 3; }
.hears { stroke: #5b7fa8; }"""


@frozen
class _Box:
    """A box of rows. ``left`` and ``right`` are the ends of lines that meet it."""

    x: int
    y: int
    width: int
    rows: int = 1

    @property
    def height(self) -> int:
        return self.rows * _ROW

    def end(self, *, right: bool, row: int = 0) -> tuple[int, int]:
        """Where a line meets a row of the box."""
        return self.x + (self.width if right else 0), self.y + row * _ROW + _ROW // 2


def svg_of(graph: Graph) -> str:
    """The graph as a picture."""
    services = _column(_SERVICES, [1] * len(graph.services))
    plugins = _column(_PLUGINS, [1] * len(graph.plugins))
    events = _column(_EVENTS, [1 + len(event.listeners) for event in graph.events])
    where = {plugin.id: box for plugin, box in zip(graph.plugins, plugins, strict=True)}
    parts = [
        *_heads(),
        *_service_lines(graph.services, services, where),
        *_event_lines(graph, events, where),
        *(part for service, box in zip(graph.services, services, strict=True) for part in _service(service, box)),
        *(part for plugin, box in zip(graph.plugins, plugins, strict=True) for part in _plugin(plugin, box)),
        *(part for number, box in enumerate(events) for part in _event(graph, number, box)),
    ]
    bottom = max((box.y + box.height for box in (*services, *plugins, *events)), default=_TOP) + _GAP
    return _document(parts, bottom)


def _document(parts: Iterable[str], height: int) -> str:
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img">',
        "<title>The plugins of a host: services, order, listeners</title>",
        f"<style>{_STYLE}</style>",
        '<rect x="0" y="0" width="100%" height="100%" style="fill: #ffffff; stroke: none"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _column(place: tuple[int, int], sizes: Sequence[int]) -> list[_Box]:
    """Boxes of so many rows, one below the other."""
    x, width = place
    boxes, y = [], _TOP
    for rows in sizes:
        boxes.append(_Box(x, y, width, rows))
        y += rows * _ROW + _GAP
    return boxes


def _heads() -> Iterator[str]:
    for (x, _), head, below in (
        (_SERVICES, "Services", "thick: provides; dashed: optional"),
        (_PLUGINS, "Plugins", "in their order"),
        (_EVENTS, "Listeners", "the first one is the outermost"),
    ):
        yield _text(x, 32, head, "head")
        yield _text(x, 50, below, "dim")


def _service(service: ServicePoint, box: _Box) -> Iterator[str]:
    provider = service.provider or "nobody"
    yield _rect(box, "" if service.provider == HOST else "active" if service.provider else "off")
    yield from _pair(box, 0, service.name, provider, f"{service.name}: provided by {provider}")


def _plugin(plugin: PluginPoint, box: _Box) -> Iterator[str]:
    state = "" if plugin.state == "active" else plugin.state
    offers = counted(len(plugin.tools), "tool") if plugin.tools else ""
    note = f"{plugin.id}: {plugin.state}" + (f"; offers {', '.join(plugin.tools)}" if plugin.tools else "")
    yield _rect(box, "off" if state else "active")
    yield from _pair(box, 0, plugin.id, state or offers, note)


def _event(graph: Graph, number: int, box: _Box) -> Iterator[str]:
    event = graph.events[number]
    yield _rect(box)
    yield from _pair(box, 0, event.name, event.mode, f"{event.name}: {event.mode}")
    for row, listener in enumerate(event.listeners, start=1):
        note = f"{listener.plugin}: {listener.function}"
        yield from _pair(box, row, f"{row}. {listener.plugin}", listener.band or _short(listener), note)


def _short(listener: ListenerPoint) -> str:
    return listener.function.partition(" ")[0]


def _service_lines(services: Sequence[ServicePoint], boxes: Sequence[_Box], where: Mapping[str, _Box]) -> Iterator[str]:
    for service, box in zip(services, boxes, strict=True):
        if service.provider is not None and service.provider in where:
            yield _line(box.end(right=True), where[service.provider].end(right=False), "gives")
        for use in service.users:
            if use.plugin in where:
                yield _line(box.end(right=True), where[use.plugin].end(right=False), "" if use.required else "may")


def _event_lines(graph: Graph, boxes: Sequence[_Box], where: Mapping[str, _Box]) -> Iterator[str]:
    for event, box in zip(graph.events, boxes, strict=True):
        for row, listener in enumerate(event.listeners, start=1):
            if listener.plugin in where:
                yield _line(where[listener.plugin].end(right=True), box.end(right=False, row=row), "hears")


def _pair(box: _Box, row: int, left: str, right: str, note: str) -> Iterator[str]:
    """A row of a box: a text at its left, a remark at its right, both cut to the room that there is."""
    y = box.y + row * _ROW + 16
    remark = shortened(right, box.width // 2 // _SMALL)
    room = (box.width - 24 - len(remark) * _SMALL) // _WIDE
    yield _text(box.x + 8, y, shortened(left, room), note=note)
    if remark:
        yield _text(box.x + box.width - 8, y, remark, "dim", end=True)


def _rect(box: _Box, style: str = "") -> str:
    place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
    return f'<rect {place} rx="4"{_class(style)}/>'


def _line(start: tuple[int, int], end: tuple[int, int], style: str) -> str:
    middle = (start[0] + end[0]) // 2
    curve = f"M {start[0]} {start[1]} C {middle} {start[1]}, {middle} {end[1]}, {end[0]} {end[1]}"
    return f'<path d="{curve}"{_class(style)}/>'


def _text(x: int, y: int, text: str, style: str = "", *, note: str = "", end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    title = f"<title>{_escaped(note)}</title>" if note else ""
    return f'<text x="{x}" y="{y}"{anchor}{_class(style)}>{title}{_escaped(text)}</text>'


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""


def _escaped(text: str) -> str:
    """A text as XML can hold it, whatever somebody has called a plugin or a function."""
    return html.escape(_UNFIT.sub("\ufffd", visible(text)))
