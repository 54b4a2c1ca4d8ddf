"""What of an exception the outside gets to see: its message, and the lines of the program that led to it.

Everything here runs code of the program (``__str__``, ``__cause__``), within the program's own limits.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import FrameType, TracebackType

from .source import FILE

_MAX_TEXT = 16_000
_MAX_MESSAGE = 2_000
_MAX_LINES = 30
_MAX_RELATED = 8


def message_of(error: BaseException) -> str:
    """The exception's type and what it says."""
    text = traceback.format_exception_only(type(error), error)
    if isinstance(error, SyntaxError) and error.filename == FILE:
        return cut(f"{text[-1].strip()} (line {error.lineno})", _MAX_MESSAGE)
    return cut("".join(text).strip(), _MAX_MESSAGE)


def trace_of(error: BaseException) -> str:
    """The traceback, cut to the program's own lines; with the causes, and the members of a group."""
    return cut("\n".join(_parts(error, set())), _MAX_TEXT)


def cut(text: str, most: int) -> str:
    """The text without its middle if it is too long, and without what is no character."""
    if len(text) > most:
        text = f"{text[: most // 2]}\n…\n{text[-most // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode()


def _parts(error: BaseException, seen: set[int]) -> Iterator[str]:
    if id(error) in seen or len(seen) >= _MAX_RELATED:
        return
    seen.add(id(error))
    if error.__cause__ is not None:
        yield from _parts(error.__cause__, seen)
        yield "\nThe above exception was the direct cause of the following exception:\n"
    elif error.__context__ is not None and not error.__suppress_context__:
        yield from _parts(error.__context__, seen)
        yield "\nDuring handling of the above exception, another exception occurred:\n"
    yield _one(error)
    if isinstance(error, BaseExceptionGroup):
        for number, member in enumerate(error.exceptions, 1):
            yield f"\nMember {number} of the group:\n"
            yield from _parts(member, seen)


def _one(error: BaseException) -> str:
    frames = list(_own(error.__traceback__))
    lines = []
    if frames:
        lines = ["Traceback (most recent call last):\n"]
        shown = frames if len(frames) <= _MAX_LINES else [*frames[: _MAX_LINES // 2], *frames[-_MAX_LINES // 2 :]]
        lines += traceback.StackSummary.extract(iter(shown)).format()
        if len(frames) > len(shown):
            lines.append(f"  ({len(frames)} frames in all)\n")
    return "".join([*lines, *traceback.format_exception_only(type(error), error)]).rstrip()


def _own(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """The frames in which the program's own text ran."""
    for frame, line in traceback.walk_tb(trace):
        if frame.f_code.co_filename == FILE:
            yield frame, line
