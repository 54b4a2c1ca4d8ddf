"""What a program finds under the name ``tools``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, NoReturn

from .channel import Channel
from .values import encode
from .wire import MAX_NAME

#: Every so many calls the event loop gets its turn, whatever it has to do.
_GIVE_WAY = 16


class ToolCallError(Exception):
    """A tool failed, or was not allowed to run. ``name`` and ``code`` are those of the failure, where it has any."""

    def __init__(self, message: str, name: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.name = name
        self.code = code


# So that a traceback calls it as the program does.
ToolCallError.__module__ = "builtins"


class Calls:
    """The sub-calls of one program: numbered as they are made, and waited for by their numbers."""

    def __init__(self, channel: Channel, loop: asyncio.AbstractEventLoop, most: int, max_frame: int) -> None:
        self._channel = channel
        self._loop = loop
        self._most = most
        self._max_frame = max_frame
        self._count = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def call(self, name: str, arguments: Any) -> Any:
        """Make a sub-call and wait for its value."""
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(
                f"tools.{name} was called in another event loop; use "
                "asyncio.run_coroutine_threadsafe(tools.name(args), loop) with the loop that the program runs in"
            )
        if self._count >= self._most:
            raise ToolCallError(
                f"tools.{name} was not called: a program may make {self._most:,} calls, and this one has made them",
                "CodeLimitError",
                "TOO_MANY_CALLS",
            )
        number = self._count + 1
        body = encode(["call", number, name], arguments, f"the argument of tools.{name}", self._max_frame)
        self._count = number
        future = self._waiting[number] = self._loop.create_future()
        self._channel.listen()
        self._channel.send(body)
        if number % _GIVE_WAY and self._is_all_there_is():
            self._channel.wait_briefly()
        try:
            return await future
        finally:
            if self._waiting.pop(number, None) is not None:  # given up on
                self._channel.send(b'["cancel",%d]' % number)

    def _is_all_there_is(self) -> bool:
        """Whether no other task of the program could go on meanwhile. Timers can wait for as long as it takes."""
        return not getattr(self._loop, "_ready", True)

    def heard(self, message: list[Any]) -> None:
        """The host says what became of a sub-call."""
        future = self._waiting.pop(message[1], None)
        if future is None or future.done():
            return
        if message[0] == "value":
            future.set_result(message[2])
        else:
            future.set_exception(ToolCallError(*message[2:]))


class Tool:
    """One tool: call it with its arguments, as one mapping or by keyword, and await it."""

    __slots__ = ("_calls", "_name")

    def __init__(self, calls: Calls, name: str) -> None:
        self._calls = calls
        self._name = name

    def __call__(self, arguments: Any = None, /, **named: Any) -> Coroutine[Any, Any, Any]:
        if named and arguments is not None:
            raise TypeError(f"tools.{self._name} takes one mapping or arguments by keyword, not both")
        return self._calls.call(self._name, named if arguments is None else arguments)

    def __await__(self) -> NoReturn:
        raise TypeError(f"tools.{self._name} has to be called: await tools.{self._name}(args)")

    def __repr__(self) -> str:
        return f"<tool {self._name}>"


class Tools:
    """``tools.name`` or ``tools["odd-name"]`` is a tool; whether there is one, the call will tell."""

    __slots__ = ("_calls",)

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Tool:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Tool(self._calls, name)

    def __getitem__(self, name: str) -> Tool:
        if not isinstance(name, str) or len(name) > MAX_NAME:
            raise KeyError(f"the name of a tool is a string of at most {MAX_NAME} characters")
        json.dumps(name, ensure_ascii=False).encode()  # a lone surrogate is told here and not by the host
        return Tool(self._calls, name)

    def __repr__(self) -> str:
        return "<tools>"
