"""What a program's process says to the host: taken apart, rebuilt and checked, never trusted.

No I/O happens here: bytes go in, messages come out, and the first thing that no honest process would send raises
``Violation``. How frames look is told in ``child.wire``.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast

from attrs import frozen
from dsh_hookspecs import JsonValue, JsonValueError

from dsh_runtime.code_mode.interface import SubReply
from dsh_runtime.code_mode.runtime.child.values import collection_paused
from dsh_runtime.code_mode.runtime.child.wire import HEADER, MAX_DEPTH, MAX_NAME, cost, framed, max_cost
from dsh_runtime.code_mode.runtime.parsed import freeze_parsed

_MAX_REASON: Final = 10_000
_MAX_TRACE: Final = 100_000
#: From this cost on it pays to keep the garbage collector away.
_LARGE: Final = 1_000_000


class Violation(Exception):  # noqa: N818 - it ends the run, and is told as what it is
    """Something that no honest process sends."""


@frozen
class Ready:
    """The process is confined and waits for a program."""

    notes: JsonValue


@frozen
class Unfit:
    """The process cannot be confined."""

    reason: str


@frozen
class SubCall:
    """A sub-call; ``cost`` is about how much memory it takes up."""

    id: int
    name: str
    arguments: JsonValue
    cost: int


@frozen
class GivenUp:
    """The program does not wait for a sub-call any more."""

    id: int


@frozen
class Returned:
    """The program has come to its end."""

    value: JsonValue


@frozen
class Failed:
    """The program has ended by an exception, or for lack of memory."""

    kind: Literal["exception", "memory"]
    message: str
    traceback: str


Message: TypeAlias = Ready | Unfit | SubCall | GivenUp | Returned | Failed


class Inbox:
    """Cuts what comes in into the bodies of frames."""

    def __init__(self, max_frame: int) -> None:
        self._max_frame = max_frame
        self._data = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Take in what has come."""
        del self._data[: self._start]
        self._start = 0
        self._data += data

    def next(self) -> bytes | None:
        """The body of the next frame that is complete."""
        body = self._start + HEADER.size
        if len(self._data) < body:
            return None
        (size,) = HEADER.unpack_from(self._data, self._start)
        if size > self._max_frame:
            raise Violation(f"it sent a frame of {size:,} bytes; at most {self._max_frame:,} are taken")
        if len(self._data) < body + size:
            return None
        self._start = body + size
        return bytes(self._data[body : self._start])


class Dialogue:
    """Knows what a process may say next: ready once, then sub-calls in order, each given up once, then the end."""

    def __init__(self, max_frame: int, sub_calls: int, *, greeted: bool = False) -> None:
        self._max_cost = max_cost(max_frame)
        self._sub_calls = sub_calls
        self._ready = greeted
        self._calls = 0
        self._given_up: set[int] = set()

    def hear(self, body: bytes) -> Message:
        """The message in a frame's body."""
        price = cost(body)
        if price > self._max_cost:
            raise Violation("it sent a frame whose values are too many")
        if price < _LARGE:
            return self._message(body, price)
        with collection_paused():
            return self._message(body, price)

    def _message(self, body: bytes, price: int) -> Message:
        match _parsed(body):
            case ["call", int(number), str(name), arguments] if self._ready:
                return self._sub_call(number, name, arguments, body, price)
            case ["cancel", int(number)] if self._ready:
                return self._cancel(number)
            case ["return", value] if self._ready:
                return Returned(_checked(value, body))
            case ["fail", "exception" | "memory" as kind, str(message), str(trace)] if self._ready:
                return Failed(cast(Any, kind), _text(message, _MAX_REASON, body), _text(trace, _MAX_TRACE, body))
            case ["ready", notes] if not self._ready:
                self._ready = True
                return Ready(_checked(notes, body))
            case ["unfit", str(reason)] if not self._ready:
                return Unfit(_text(reason, _MAX_REASON, body))
        raise Violation("it sent a frame that is no message, or not one that was due")

    def _sub_call(self, number: int, name: str, arguments: object, body: bytes, price: int) -> SubCall:
        if type(number) is not int or number != self._calls + 1:
            raise Violation(f"it sent a sub-call with a forged id, {number}; the next one is {self._calls + 1}")
        if number > self._sub_calls:
            raise Violation(f"it sent more than {self._sub_calls:,} sub-calls, without counting them itself")
        self._calls = number
        return SubCall(number, _text(name, MAX_NAME, body), _checked(arguments, body), price)

    def _cancel(self, number: int) -> GivenUp:
        if type(number) is not int or not 0 < number <= self._calls or number in self._given_up:
            raise Violation(f"it gave up on a sub-call with a forged id, {number}")
        self._given_up.add(number)
        return GivenUp(number)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False)


def _parsed(body: bytes) -> object:
    try:
        text = body.decode()
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        raise Violation("it sent a frame that is no JSON") from None
    if end != len(text):
        raise Violation("it sent a frame that is no JSON")
    return value


def _checked(value: object, body: bytes) -> JsonValue:
    try:
        return freeze_parsed(value, body, MAX_DEPTH)
    except JsonValueError as error:
        raise Violation(f"it sent a value that is no lossless JSON: {error}") from None


def _text(text: str, most: int, body: bytes) -> str:
    if len(text) > most:
        raise Violation(f"it sent a text of {len(text):,} characters where at most {most:,} are due")
    _checked(text, body)
    return text


def program_frame(code: str) -> bytes:
    """The frame that hands a program over."""
    return framed(_ENCODER.encode(["run", code]).encode())


def reply_frame(number: int, reply: SubReply, max_frame: int) -> bytes:
    """The frame that answers a sub-call; a value that is too large becomes an error."""
    body = _reply(number, reply)
    if len(body) > max_frame:
        text = f"the result is too large for a program: {len(body):,} bytes as JSON; at most {max_frame:,}"
        body = _ENCODER.encode(["error", number, text, "CodeLimitError", "VALUE_TOO_LARGE"]).encode()
    return framed(body)


def _reply(number: int, reply: SubReply) -> bytes:
    error = reply.error
    if error is not None:
        return _ENCODER.encode(["error", number, error.message, error.name, error.code]).encode("utf-8", "replace")
    try:
        return _ENCODER.encode(["value", number, reply.value]).encode()
    except RecursionError:
        text = "the result nests too deep for a program"
        return _ENCODER.encode(["error", number, text, "CodeLimitError", "VALUE_TOO_LARGE"]).encode()
