"""Say in one line what an exception of somebody else's code was, and in which of their files it arose."""

from __future__ import annotations

import traceback

from .errors import Location, shorten
from .ownership import is_host, is_python


def summary_of(error: BaseException) -> str:
    """The exception's class and message, on one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    name = type(error).__name__
    return f"{name}: {shorten(text)}" if text else name


def place_of(error: BaseException) -> Location | None:
    """The file and line that raised, in the plugin's code rather than in the standard library that it called.

    Nor in the host's own: an error that it raises on purpose is about the plugin that called it.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return Location(error.filename, error.lineno or 1)
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not (is_host(frame.filename) or is_python(frame.filename))]
    return Location(theirs[-1].filename, theirs[-1].lineno or 1) if theirs else None
