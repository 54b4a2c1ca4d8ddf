"""Calls as tests write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias


class Call(NamedTuple):
    """A tool by its name, and what it is called with. A pair of the two is as good wherever the kit takes a call."""

    name: str
    arguments: Any = {}  # noqa: RUF012 - never changed

    def __str__(self) -> str:
        return f"{self.name}({self.arguments!r:.200})"


#: A :class:`Call`, or a pair of a tool's name and arguments.
CallLike: TypeAlias = "Call | tuple[str, Any]"


def call(tool: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Call:
    """A call: ``call("greet", name="Ada")``. What is no Python name stands in a mapping in front of the rest."""
    return Call(tool, {**(arguments or {}), **more})
