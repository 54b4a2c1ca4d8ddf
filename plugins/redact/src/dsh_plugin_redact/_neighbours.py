"""Secrets in texts whose name stands beside them, in quotes of its own, and not in front of a colon.

``{"name": "DB_PASSWORD", "value": "…"}``, in either order, in JSON, YAML, XML or code; pairs in a list, as headers are
kept: ``[["X-Api-Key", "…"], …]``, ``[(b"cookie", b"…")]``; and options of a command that is a list:
``["--password", "…"]``. Every pattern looks at a bounded stretch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

_NAME: Final = r"[a-z0-9_.-]{1,64}+"
_QUOTE: Final = r"\\{0,7}[\"']"
_NAMING: Final = "(?:name|key|header)"
#: Between the two: a comma, a new line, or, between attributes of XML, a blank behind a quote.
_BETWEEN: Final = r"(?:[ \t]{0,8}(?:,\s{0,40}|\r?\n[ \t]{0,40})|(?<=[\"'])\s{1,40})"


class Neighbour(NamedTuple):
    """The name of what may be a secret, where its value begins, and where it ends, if that has been measured."""

    name: str
    start: int
    end: int | None = None


def behind_names(text: str, folded: str) -> Iterator[Neighbour]:
    """Values with their name in front of them; ``folded`` is ``text`` in lower case, position by position."""
    if "value" in folded:
        for match in _name_first().finditer(folded):
            yield Neighbour(text[slice(*match.span("name"))], match.end())


def in_front_of_names(text: str, folded: str) -> Iterator[Neighbour]:
    """Values with their name behind them."""
    if "value" in folded:
        for match in _value_first().finditer(folded):
            kind = "quoted" if match["quote"] else "bare"
            yield Neighbour(text[slice(*match.span("name"))], *match.span(kind))


def in_pairs(text: str, folded: str) -> Iterator[Neighbour]:
    """Values in quotes that stand with their name in a pair, in a list of such."""
    for match in _in_a_list().finditer(folded):
        yield Neighbour(text[slice(*match.span("name"))], match.end())


def behind_options(text: str, folded: str) -> Iterator[Neighbour]:
    """Values in quotes that stand behind an option in a list of words."""
    if "--" in folded:
        for match in _option().finditer(folded):
            yield Neighbour(text[slice(*match.span("name"))], match.end())


@cache
def _name_first() -> re.Pattern[str]:
    return re.compile(
        rf"{_NAMING}(?:{_QUOTE})?[ \t]{{0,8}}[:=][ \t]{{0,8}}(?P<quote>{_QUOTE})?(?P<name>{_NAME})(?(quote)(?P=quote))"
        rf"{_BETWEEN}(?:{_QUOTE})?value(?:{_QUOTE})?[ \t]{{0,8}}[:=][ \t]{{0,8}}"
    )


@cache
def _value_first() -> re.Pattern[str]:
    between = r"[ \t]{0,8}[:=][ \t]{0,8}"
    return re.compile(
        rf"value(?:{_QUOTE})?{between}"
        rf"(?:(?P<quote>{_QUOTE})(?P<quoted>(?:(?!(?<!\\)(?P=quote))[^\r\n]){{0,512}}+)(?P=quote)"
        r"|(?P<bare>[^\s\"',{}]{1,512}+))"
        rf"{_BETWEEN}(?:{_QUOTE})?{_NAMING}(?:{_QUOTE})?{between}"
        rf"(?:{_QUOTE})?(?P<name>{_NAME})"
    )


@cache
def _in_a_list() -> re.Pattern[str]:
    return re.compile(
        rf"[\[(,]\s{{0,40}}[\[(]\s{{0,40}}b?(?P<quote>{_QUOTE})(?P<name>{_NAME})(?P=quote)[ \t]{{0,8}},\s{{0,40}}"
    )


@cache
def _option() -> re.Pattern[str]:
    return re.compile(rf"(?P<quote>{_QUOTE})--(?P<name>{_NAME})(?P=quote)[ \t]{{0,8}},\s{{0,40}}(?!{_QUOTE}--)")
