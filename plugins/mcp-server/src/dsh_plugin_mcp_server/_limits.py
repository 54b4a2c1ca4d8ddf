"""How large and how deep a value may be before a client gets it."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from dsh_plugin_mcp_server._wire import encode_json


@frozen
class Limits:
    """The bounds of one result, or of the description of one tool."""

    max_bytes: int
    max_depth: int

    def excess(self, value: Any) -> str | None:
        """Which bound ``value`` breaks, in words; ``None`` if it keeps both."""
        if is_deeper(value, self.max_depth):
            return f"is nested deeper than {self.max_depth} levels"
        size = len(encode_json(value))
        if size > self.max_bytes:
            return f"takes {size:,} bytes as JSON, more than {self.max_bytes:,}"
        return None


def is_deeper(value: Any, limit: int) -> bool:
    """Whether arrays and objects nest more than ``limit`` deep, found level by level without recursion."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(limit):
        if not level:
            return False
        level = [child for node in level for child in _children(node) if isinstance(child, _CONTAINERS)]
    return bool(level)


_CONTAINERS = (dict, list, tuple)


def _children(node: Any) -> Any:
    return node.values() if isinstance(node, dict) else node
