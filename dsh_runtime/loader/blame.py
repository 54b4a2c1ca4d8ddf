"""Say in one line what an exception of somebody else's code was, and in which of their files it arose."""

from __future__ import annotations

import os
import traceback

from .errors import Location, shorten

#: The host's own code: an error that it raises on purpose is about the plugin that called it.
_HOST = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")


def summary_of(error: BaseException) -> str:
    """The exception's class and message, on one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    name = type(error).__name__
    return f"{name}: {shorten(text)}" if text else name


def place_of(error: BaseException) -> Location | None:
    """The file and line that raised, in the plugin's code rather than in the standard library that it called."""
    if isinstance(error, SyntaxError) and error.filename:
        return Location(error.filename, error.lineno or 1)
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not _is_ours_or_python(frame.filename)]
    return Location(theirs[-1].filename, theirs[-1].lineno or 1) if theirs else None


def _is_ours_or_python(filename: str) -> bool:
    if filename.startswith(("<", _HOST)):
        return True
    return filename.startswith(_LIBRARY) and "site-packages" not in filename
