"""Hears every stage of every call, and what was answered, in order."""

from __future__ import annotations

from typing import Any

from attrs import frozen


@frozen(eq=False)
class Heard:
    """One event as it was heard: its name, the tool it was about, and what was answered (``None``: an emit)."""

    event: str
    tool: str | None
    answer: Any
    arguments: tuple[Any, ...]

    def __str__(self) -> str:
        about = f" {self.tool}" if self.tool else ""
        answer = f" -> {self.answer!r:.200}" if self.answer is not None else ""
        return f"{self.event}{about}{answer}"


class Recorder:
    """A plugin in front of all others. ``heard`` is all that it heard; it changes nothing."""

    name = "recorder"

    def __init__(self) -> None:
        self.heard: list[Heard] = []

    def apply(self, ctx: Any) -> None:
        """Listen to everything."""
        for event, fn in {
            "tools/pre-execute": self._before,
            "tools/execute": self._around,
            "tools/post-execute": self._after,
        }.items():
            ctx.on(event, fn, prepend=True)
        ctx.on("tools/result", self._result, prepend=True)
        ctx.on("tools/progress", self._progress)
        ctx.on("tools/change", lambda: self._note("tools/change", None, None))
        ctx.on("approval/asked", lambda request: self._note("approval/asked", None, None, request))

    def events(self, tool: str | None = None) -> list[str]:
        """The names of what was heard, of one tool or of all."""
        return [heard.event for heard in self.heard if tool is None or heard.tool == tool]

    def answers(self, event: str, tool: str | None = None) -> list[Any]:
        """What was answered to an event, in order."""
        return [one.answer for one in self.heard if one.event == event and (tool is None or one.tool == tool)]

    def told(self) -> str:
        """All of it, a line each, for a message."""
        return "\n".join(map(str, self.heard))

    def clear(self) -> None:
        """Forget what was heard."""
        self.heard.clear()

    async def _before(self, exec: Any, next: Any) -> Any:
        answer = await next()
        self._note("tools/pre-execute", exec.name, answer, exec)
        return answer

    async def _around(self, exec: Any, next: Any) -> Any:
        answer = await next()
        self._note("tools/execute", exec.name, answer, exec)
        return answer

    async def _after(self, exec: Any, result: Any, next: Any) -> Any:
        answer = await next()
        self._note("tools/post-execute", exec.name, answer, exec, result)
        return answer

    def _result(self, exec: Any, result: Any) -> None:
        self._note("tools/result", exec.name, result, exec)

    def _progress(self, exec: Any, progress: Any) -> None:
        self._note("tools/progress", exec.name, None, progress)

    def _note(self, event: str, tool: str | None, answer: Any, *arguments: Any) -> None:
        self.heard.append(Heard(event, tool, answer, arguments))
