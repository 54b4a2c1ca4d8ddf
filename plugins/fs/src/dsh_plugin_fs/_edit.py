"""Replace one passage of a text, found whatever its line endings are."""

from __future__ import annotations

import re
from bisect import bisect_left

from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._text import LineEndings, line_endings, with_endings

_LINES_NAMED = 5
_MAX_PLACES = 100


def replace_once(text: str, old: str, new: str, shown: str) -> str:
    """Put ``new`` in the place of ``old``, which must occur exactly once.

    LF and CRLF count as the same when looking for ``old``; everything around it stays as it is, and the lines of
    ``new`` end as those that it replaces do, or as most lines of the text.
    """
    plain, plain_old = text.replace("\r\n", "\n"), old.replace("\r\n", "\n")
    _check_texts(plain_old, new.replace("\r\n", "\n"))
    at = _only_place(plain, plain_old, shown)
    starts = [match.start() - index for index, match in enumerate(re.finditer("\r\n", text))]
    begin, end = (place + bisect_left(starts, place) for place in (at, at + len(plain_old)))
    endings = _endings_for(text[begin:end], text)
    return text[:begin] + with_endings(new, endings) + text[end:]


def _check_texts(old: str, new: str) -> None:
    if not old:
        raise FsError("FS_BAD_EDIT", "'old_text' is empty; give the text to replace, or use fs_write for a new file")
    if old == new:
        raise FsError("FS_BAD_EDIT", "'old_text' and 'new_text' are the same; there is nothing to change")


def _only_place(text: str, old: str, shown: str) -> int:
    places = _places(text, old)
    if not places:
        rule = "every character counts, spaces too; read the file again and copy the text from it"
        raise FsError("FS_NO_MATCH", f"'old_text' does not occur in '{shown}': {rule}")
    if len(places) > 1:
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places[:_LINES_NAMED])
        more = ", …" if len(places) > _LINES_NAMED else ""
        count = f"{_MAX_PLACES} or more" if len(places) == _MAX_PLACES else str(len(places))
        message = f"'old_text' occurs {count} times in '{shown}' (lines {lines}{more}); it must occur exactly once"
        raise FsError("FS_NOT_UNIQUE", f"{message}: add lines around it until it is unique")
    return places[0]


def _places(text: str, old: str) -> list[int]:
    """Return where ``old`` begins in ``text``, places that overlap included, up to a bound."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) < _MAX_PLACES:
        places.append(at)
        at = text.find(old, at + 1)
    return places


def _endings_for(passage: str, text: str) -> LineEndings:
    endings = line_endings(passage)
    if endings in ("lf", "crlf"):
        return endings
    crlf = text.count("\r\n")
    if not crlf:
        return "lf" if "\n" in text else "none"
    return "crlf" if crlf > text.count("\n") - crlf else "lf"
