"""Who decided what about a call: kept for some time, so that an assertion about its result can tell it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dsh_hookspecs import JsonValue, ToolExecution, ToolExecutionResult

from dsh_runtime.tools.registry import Journal

#: The plugin of the kit's own that every call passes.
RECORDER: Final = "recorder"
#: How many stories a host keeps, and how many hosts are remembered: tests look at results after their host has gone.
_CALLS: Final = 1000
_HOSTS: Final = 4


class Stories:
    """A journal that keeps the story of each call for the tests, in front of the one that there is."""

    def __init__(self, behind: Journal | None) -> None:
        self._behind = behind
        self.kept: dict[int, tuple[ToolExecutionResult, Sequence[Mapping[str, Any]]]] = {}
        _recent.append(self)

    async def called(self, exec: ToolExecution) -> None:
        """A call has entered."""
        waiting = self._behind.called(exec) if self._behind is not None else None
        if waiting is not None:
            await waiting

    async def finished(
        self, exec: ToolExecution, result: ToolExecutionResult, story: Sequence[dict[str, JsonValue]] | None
    ) -> None:
        """A call has its result."""
        self.kept[id(result)] = result, story or ()
        if len(self.kept) > _CALLS:
            del self.kept[next(iter(self.kept))]
        waiting = self._behind.finished(exec, result, story) if self._behind is not None else None
        if waiting is not None:
            await waiting


_recent: deque[Stories] = deque(maxlen=_HOSTS)


def story_of(result: ToolExecutionResult) -> list[Mapping[str, Any]]:
    """The steps of the call that a result came from, in order, without the kit's own; empty where nobody took notes."""
    for stories in _recent:
        kept, story = stories.kept.get(id(result), (None, ()))
        if kept is result:
            return [step for step in story if step.get("plugin") != RECORDER]
    return []


def told(story: Sequence[Mapping[str, Any]]) -> list[str]:
    """A story, a line for each step: the stage, who was asked there, and the answer."""
    rows = [(str(step["stage"]), _who(step), _answer(step)) for step in story]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)] if rows else []
    return [f"{stage:{widths[0]}}  {who:{widths[1]}}  {answer}" for stage, who, answer in rows]


def _who(step: Mapping[str, Any]) -> str:
    plugin, listener = step.get("plugin"), step.get("listener")
    if plugin is None:
        return "the host"
    return f"{plugin} ({listener})" if listener is not None else str(plugin)


def _answer(step: Mapping[str, Any]) -> str:
    detail = step.get("detail")
    return f"{step['answer']}: {detail}" if detail is not None else str(step["answer"])
