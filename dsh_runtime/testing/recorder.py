"""Hears every stage of every call, and what was answered, in order."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import define

from dsh_runtime.testing.differences import shown
from dsh_runtime.testing.stories import RECORDER, Stories


@define(eq=False)
class Heard:
    """One event as it was heard: its name, the tool it was about, what listeners are given, and what was answered.

    The answer of ``tools/result`` is the result; that of any other emit is ``None``. ``raised`` is what came instead of
    an answer.
    """

    event: str
    tool: str | None
    arguments: tuple[Any, ...]
    answer: Any = None
    raised: BaseException | None = None

    @property
    def exec(self) -> Any:
        """The call, where the event is about one."""
        return self.arguments[0] if self.tool is not None else None

    def __str__(self) -> str:
        about = f" {self.tool}({shown(self.exec.arguments)})" if hasattr(self.exec, "arguments") else ""
        if self.raised is not None:
            return f"{self.event}{about} raised {self.raised!r:.200}"
        return f"{self.event}{about}" + (f" -> {self.answer!r:.200}" if self.answer is not None else "")


class Recorder:
    """A plugin in front of the others. ``heard`` is all that it heard, in order; it changes nothing.

    A stage stands where it began; its answer is there when it has ended.
    """

    name = RECORDER
    inject = ("tools",)

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self._ctx: Any = None

    def apply(self, ctx: Any) -> None:
        """Listen to everything, and keep the stories of the calls."""
        ctx.on("tools/pre-execute", self._pre_execute, prepend=True)
        ctx.on("tools/execute", self._execute, prepend=True)
        ctx.on("tools/post-execute", self._post_execute, prepend=True)
        ctx.on("tools/result", self._result, prepend=True)
        ctx.on("tools/progress", self._progress)
        ctx.on("tools/change", lambda: self._note("tools/change", None))
        ctx.on("plugin/state", lambda fiber, previous: self._note("plugin/state", None, fiber, previous))
        ctx.on("approval/asked", lambda request: self._note("approval/asked", None, request))
        ctx.on("approval/decided", self._decided)
        self._ctx = ctx
        self._keep_stories(ctx)

    def hear(self, event: str) -> Callable[[], Any]:
        """Hear one more event, such as a plugin has declared; give back the undo."""
        declared = self._ctx.fiber.house.events.get(event, self.name)
        listener = self._waterfall(event) if declared.info.mode == "waterfall" else self._emit(event)
        names = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in declared.arguments]
        listener.__dict__["__signature__"] = inspect.Signature(names)
        undo: Callable[[], Any] = self._ctx.on(event, listener, prepend=True)
        return undo

    def _waterfall(self, event: str) -> Callable[..., Any]:
        async def hear(*arguments: Any) -> Any:
            return await self._around(self._note(event, None, *arguments[:-1]), arguments[-1])

        return hear

    def _emit(self, event: str) -> Callable[..., Any]:
        def hear(*arguments: Any) -> None:
            self._note(event, None, *arguments)

        return hear

    @staticmethod
    def _keep_stories(ctx: Any) -> None:
        log = ctx.tools.machine.resolver.journal()
        if log is None:
            ctx.tools.keep_record(Stories(None))
        else:
            log.value = Stories(log.value)

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

    async def _pre_execute(self, exec: Any, next: Callable[[], Awaitable[Any]]) -> Any:
        return await self._around(self._note("tools/pre-execute", exec.name, exec), next)

    async def _execute(self, exec: Any, next: Callable[[], Awaitable[Any]]) -> Any:
        return await self._around(self._note("tools/execute", exec.name, exec), next)

    async def _post_execute(self, exec: Any, result: Any, next: Callable[[], Awaitable[Any]]) -> Any:
        return await self._around(self._note("tools/post-execute", exec.name, exec, result), next)

    async def _around(self, heard: Heard, next: Callable[[], Awaitable[Any]]) -> Any:
        try:
            heard.answer = await next()
        except BaseException as error:
            heard.raised = error
            raise
        return heard.answer

    def _result(self, exec: Any, result: Any) -> None:
        self._note("tools/result", exec.name, exec).answer = result

    def _progress(self, exec: Any, progress: Any) -> None:
        self._note("tools/progress", exec.name, exec, progress)

    def _decided(self, request: Any, outcome: Any, channel: Any) -> None:
        self._note("approval/decided", None, request, channel).answer = outcome

    def _note(self, event: str, tool: str | None, *arguments: Any) -> Heard:
        heard = Heard(event, tool, arguments)
        self.heard.append(heard)
        return heard
