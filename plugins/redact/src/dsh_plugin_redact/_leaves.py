"""What an object or a nested list in a text holds, when it stands behind the name of a secret.

Strategy: one pass over its tokens. A scalar is a value unless a colon follows it, which makes it the name of a member.
One that does not end within :data:`_REACH` is looked at no further, and only its quoted texts count: it may be none at
all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from dsh_plugin_redact._mask import KIND

_REACH: Final = 32_768


class Leaf(NamedTuple):
    """Where a scalar stands, and whether it is in quotes."""

    start: int
    end: int
    quoted: bool


def opens(text: str, position: int) -> bool:
    """Whether an object or a list begins at ``position``."""
    return text.startswith(("{", "["), position) and not text.startswith("[redacted: ", position)


def leaves(text: str, position: int) -> tuple[list[Leaf], int]:
    """The values in the object or list at ``position``, and where it ends."""
    found: list[Leaf] = []
    open_brackets: list[str] = []
    last: Leaf | None = None
    behind_colon = False
    for match in _tokens(text, position):
        kind = match.lastgroup
        if kind == "colon":
            last, behind_colon = None, True
            continue
        if kind == "blank":
            continue
        if last is not None:
            found.append(last)
            last = None
        if kind == "open":
            open_brackets.append(match[0])
        elif kind == "close":
            open_brackets.pop()
            if not open_brackets:
                return found, match.end()
        elif kind == "quoted":
            last = Leaf(*match.span(kind), True)
        elif kind == "bare" and (behind_colon or open_brackets[-1] == "["):
            last = Leaf(*match.span(), False)
        behind_colon = False
    if last is not None:
        found.append(last)
    return [leaf for leaf in found if leaf.quoted], min(len(text), position + _REACH)


def _tokens(text: str, position: int) -> Iterator[re.Match[str]]:
    pattern, end = _token_pattern(), min(len(text), position + _REACH)
    while (match := pattern.match(text, position, end)) is not None and match.end() > position:
        yield match
        position = match.end()


@cache
def _token_pattern() -> re.Pattern[str]:
    # The name of the last group that matched tells the kind; the quote that closes a text belongs to none.
    return re.compile(
        rf"(?P<mask>\[redacted: {KIND}\])|(?P<open>[{{\[])|(?P<close>[}}\]])|(?P<colon>[ \t\r\n]*+:)"
        r"|(?P<blank>[ \t\r\n]++)|(?P<comma>,)"
        r"|(?P<quote>\\{0,7}[\"'])(?P<quoted>(?:(?!(?<!\\)(?P=quote))[^\r\n])*+)(?:(?P=quote))?"
        r"|(?P<bare>[^ \t\r\n\"'{}\[\],:]++)"
    )
