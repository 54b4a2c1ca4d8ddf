"""What the agent reads."""

from __future__ import annotations

from dsh_hookspecs import ContextMessage


def reminder(source: str, tool: str, count: int, advice: str) -> ContextMessage:
    """A context message that tells of a repetition."""
    text = f"Tool {tool!r} has been called {count} times in a row with the same arguments. {advice}"
    return ContextMessage([{"type": "text", "text": text}], source, {"tool": tool, "count": count})
