"""Reads a docstring: its summary, and what it says about parameters in Google, Sphinx or numpy style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from attrs import field, frozen

_GOOGLE_SECTIONS = frozenset(("args:", "arguments:", "parameters:", "params:", "attributes:", "keyword args:"))
_NUMPY_SECTIONS = frozenset(("parameters", "attributes", "other parameters"))
_GOOGLE_ENTRY = r"\*{0,2}(\w+)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*:\s*(.*)"
_SPHINX_ENTRY = r":(?:param|parameter|arg|argument|key|keyword|ivar|cvar)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)"
_NUMPY_ENTRY = r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?"


@frozen
class Docstring:
    """What a docstring says: the first paragraph, and a text for each parameter that it describes."""

    summary: str = ""
    parameters: dict[str, str] = field(factory=dict)


def parse_docstring(text: str | None) -> Docstring:
    """Read a docstring in any of the three styles, or a mixture of them."""
    lines = inspect.cleandoc(text or "").splitlines()
    described: dict[str, list[str]] = {}
    for name, words in (*_google(lines), *_sphinx(lines), *_numpy(lines)):
        described.setdefault(name, []).extend(words)
    parameters = {name: _join(words) for name, words in described.items()}
    return Docstring(_summary(lines), {name: said for name, said in parameters.items() if said})


def _summary(lines: list[str]) -> str:
    paragraph: list[str] = []
    for line in lines:
        starts_section = line.strip().lower() in _GOOGLE_SECTIONS or re.match(_SPHINX_ENTRY, line.strip())
        if starts_section or (not line.strip() and paragraph):
            break
        paragraph.append(line)
    return _join(paragraph)


def _google(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for start, line in enumerate(lines):
        if line.strip().lower() in _GOOGLE_SECTIONS:
            yield from _entries(_block(lines, start + 1, _indent(line)), _GOOGLE_ENTRY)


def _sphinx(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for start, line in enumerate(lines):
        match = re.fullmatch(_SPHINX_ENTRY, line.strip())
        if match:
            yield match[1], [match[2], *_block(lines, start + 1, _indent(line), through_gaps=False)]


def _numpy(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for start in range(len(lines) - 1):
        rule = lines[start + 1].strip()
        if lines[start].strip().lower() in _NUMPY_SECTIONS and len(rule) > 2 and not rule.strip("-"):
            yield from _numpy_entries(lines, start + 2)


def _numpy_entries(lines: list[str], start: int) -> Iterator[tuple[str, list[str]]]:
    for index in range(start, len(lines)):
        if index + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[index + 1].strip()):
            return
        match = re.fullmatch(_NUMPY_ENTRY, lines[index])
        if match:
            for name in match[1].split(","):
                yield name.strip().lstrip("*"), _block(lines, index + 1, 0)


def _block(lines: list[str], start: int, indent: int, *, through_gaps: bool = True) -> list[str]:
    """Take the lines from ``start`` that are indented deeper than ``indent``."""
    block: list[str] = []
    for line in lines[start:]:
        if (line.strip() and _indent(line) <= indent) or (not line.strip() and not through_gaps):
            break
        block.append(line)
    return block


def _entries(block: list[str], pattern: str) -> Iterator[tuple[str, list[str]]]:
    margin = min((_indent(line) for line in block if line.strip()), default=0)
    name, words = "", list[str]()
    for line in block:
        match = re.fullmatch(pattern, line.strip()) if _indent(line) == margin else None
        if match:
            if name:
                yield name, words
            name, words = match[1], [match[2]]
        else:
            words.append(line)
    if name:
        yield name, words


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
