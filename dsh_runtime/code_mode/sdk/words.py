"""Texts from outside as docstrings, comments and names of Python, from which they cannot break out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MAX_DOCSTRING: Final = 2_000
MAX_COMMENT: Final = 300
_MAX_NAME: Final = 40
_LINE_ENDS: Final = re.compile("\r\n|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")


def visible(text: str) -> str:
    """The text with what cannot be seen, or steers how the rest is shown, as question marks; lines end with ``\\n``."""
    lines = _LINE_ENDS.sub("\n", text).replace("\t", "    ")
    if lines.replace("\n", "").isprintable():
        return lines
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in lines)


def cut(text: str, most: int) -> str:
    """At most so many characters, the last of which tells that there are more."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def comment(text: object) -> str:
    """A comment behind a line of code, or nothing."""
    line = " ".join(visible(text[: 4 * MAX_COMMENT]).split()) if isinstance(text, str) else ""
    return f"  # {cut(line, MAX_COMMENT)}" if line else ""


def docstring(text: str, indent: str) -> str:
    """A docstring, with the line's end; empty where there is nothing to say."""
    lines = [line.rstrip() for line in cut(visible(text[: 4 * MAX_DOCSTRING]).strip(), MAX_DOCSTRING).split("\n")]
    inner = "\n".join(line and indent + line for line in lines).strip()
    if not inner:
        return ""
    # A quote in front of another one, or at the end, could be taken for a part of the closing ones.
    escaped = re.sub(r'"(?="|\Z)', r'\\"', inner.replace("\\", "\\\\"))
    end = f"\n{indent}" if "\n" in escaped else ""
    return f'{indent}"""{escaped}{end}"""\n'


def type_name(*words: str) -> str:
    """Words as the name of a class."""
    parts = (part for word in words for part in re.split(r"[^A-Za-z0-9]+", word[: 4 * _MAX_NAME]) if part)
    name = "".join(part[0].upper() + part[1:] for part in parts)[:_MAX_NAME]
    return name if name[:1].isalpha() else f"T{name}"


class Names:
    """Names that are all different. ``taken`` are those that somebody has already."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def new(self, wanted: str) -> str:
        """The name, or the name with a number."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}{number}"
        self._taken.add(name)
        return name
