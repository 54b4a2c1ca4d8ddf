"""Arguments and other JSON as rows. It need not hold what JSON promises: a view may come from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dsh_runtime.cards.lines import text_rows
from dsh_runtime.cards.model import Row, Span, note

_INDENT: Final = "  "
_MAX_INLINE: Final = 12


def value_rows(value: Any) -> Iterator[Row]:
    """A value as rows: the members of an object below one another, texts of several lines as they are."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield from _member_rows(str(name), member)
    else:
        yield from _json_rows(value)


def _member_rows(name: str, member: Any) -> Iterator[Row]:
    key = Span(f"{json.dumps(name) if _needs_quotes(name) else name}:", "key")
    if isinstance(member, str) and "\n" in member:
        yield Row((key, Span(" text", "note")))
        yield from text_rows(member, indent=_INDENT)
        if not member.endswith("\n"):
            return
        yield Row((Span("(ends with a newline)", "note"),), (Span(_INDENT),))
    else:
        rows = _json_rows(member)
        first = next(rows, None)
        if first is not None:
            yield Row((key, Span(" "), *first.body), cut=first.cut)
        yield from rows


def _needs_quotes(name: str) -> bool:
    return not name or ":" in name or "\n" in name or name != name.strip()


def _json_rows(value: Any) -> Iterator[Row]:
    """A value as indented JSON, written no further than it is read."""
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, default=_unknown)
    begun = ""
    try:
        for chunk in _chunks(encoder, value):
            *whole, begun = (begun + chunk).split("\n")
            for line in whole:
                yield Row((Span(line),))
    except (RecursionError, TypeError, ValueError) as error:
        yield from text_rows(begun)
        yield note(f"… the rest cannot be shown: {type(error).__name__}", cut=True)
    else:
        yield from text_rows(begun)


def _chunks(encoder: json.JSONEncoder, value: Any) -> Iterator[str]:
    """The pieces of the JSON; a container of a few scalars stands on one line."""
    if isinstance(value, (dict, list, tuple)) and len(value) <= _MAX_INLINE:
        members = value.values() if isinstance(value, dict) else value
        if all(_is_short(member) for member in members):
            yield json.dumps(value, ensure_ascii=False)
            return
    yield from encoder.iterencode(value)


def _is_short(member: Any) -> bool:
    return member is None or isinstance(member, (bool, int, float)) or (isinstance(member, str) and len(member) < 16)


def _unknown(value: Any) -> str:
    return f"<{type(value).__name__}>"
