"""Which lines match: a literal text, or a regular expression that can be stopped.

Expressions come from a model and may be hostile. They are compiled by the ``regex`` library, whose search takes a
timeout. A search first gets a moment with the interpreter lock held, which is quick and suffices for nearly all lines;
when that is over it starts again with the lock released, so that the host goes on meanwhile. What makes compiling or
matching grow without bound (large repeat counts, recursion) is refused before.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import regex
from attrs import frozen

from dsh_plugin_fs._errors import FsError

MAX_PATTERN_CHARS = 1_000
MAX_REPEATS = 10_000
#: How much of one line an expression sees.
MAX_LINE_CHARS = 64 * 1024
_MOMENT = 0.002
_LONGEST = 1.0
_COUNTS = regex.compile(r"\{[\d, ]*\}")
_UNBOUNDED = regex.compile(r"\(\?(?:R|&|P>|[+-]?\d)")
_VERBOSE = regex.compile(r"\(\?[A-Za-z0-9]*x")


@frozen
class Matcher:
    """Finds where in a line the first match begins.

    A text without ``needle`` has no matching line; of each line only ``max_chars`` are looked at.
    """

    find: Callable[[str], int | None]
    needle: str = ""
    max_chars: int | None = None


def literal_matcher(text: str, *, ignore_case: bool) -> Matcher:
    """Return a matcher for lines that contain ``text``."""
    _check_text(text)
    if ignore_case:
        return Matcher(_finder(regex.compile(regex.escape(text), regex.IGNORECASE), text))
    return Matcher(lambda line: at if (at := line.find(text)) >= 0 else None, needle=text)


def regex_matcher(pattern: str, *, ignore_case: bool) -> Matcher:
    """Return a matcher for lines in which the regular expression ``pattern`` matches."""
    _check_text(pattern)
    _check_bounded(pattern)
    try:
        compiled = regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise _refusal(pattern, f"is no regular expression: {error}") from error
    return Matcher(_finder(compiled, pattern), max_chars=MAX_LINE_CHARS)


def _finder(compiled: regex.Pattern[str], pattern: str) -> Callable[[str], int | None]:
    def find(line: str) -> int | None:
        try:
            found = compiled.search(line, timeout=_MOMENT)
        except TimeoutError:
            found = _search_long(compiled, line, pattern)
        return found.start() if found else None

    return find


def _search_long(compiled: regex.Pattern[str], line: str, pattern: str) -> regex.Match[str] | None:
    try:
        return compiled.search(line, timeout=_LONGEST, concurrent=True)
    except TimeoutError as error:
        message = f"pattern '{pattern[:80]}' needs more than {_LONGEST:g} s on one line; simplify its repetitions"
        raise FsError("FS_TIMEOUT", message) from error


def _check_text(text: str) -> None:
    if not text:
        raise _refusal(text, "is empty; give the text to search for")
    if len(text) > MAX_PATTERN_CHARS:
        raise _refusal(text, f"has {len(text)} characters; at most {MAX_PATTERN_CHARS} are allowed")
    if "\n" in text:
        raise _refusal(text, "contains a line break; files are searched line by line")


def _check_bounded(pattern: str) -> None:
    counts = [max(map(int, regex.findall(r"\d{1,9}", braces)), default=1) for braces in _COUNTS.findall(pattern)]
    if math.prod(max(count, 1) for count in counts) > MAX_REPEATS:
        raise _refusal(pattern, f"repeats more than {MAX_REPEATS:,} times, all counts multiplied; use smaller counts")
    if _UNBOUNDED.search(pattern):
        raise _refusal(pattern, "uses recursion, which is not allowed; write the expression out")
    if _VERBOSE.search(pattern):
        raise _refusal(pattern, "uses the flag 'x', which is not allowed; write it without spaces and comments")


def _refusal(pattern: str, rule: str) -> FsError:
    return FsError("FS_BAD_PATTERN", f"pattern '{pattern[:80]}' {rule}")
