"""What the loader raises on purpose, and the words its messages are made of.

Every message names subject, rule, offender and remedy in one line; one error carries all the problems that were found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TypeAlias

from attrs import frozen

KeyPath: TypeAlias = tuple[str | int, ...]
"""The way to a value inside a document: ``("plugin", 0, "config", "rules", 1)``."""

MAX_PRINTED = 100


@frozen
class Location:
    """A place in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + ("" if self.column is None else f":{self.column}")


@frozen
class ConfigProblem:
    """One thing that is wrong: where in the config, where in which file, and what to do about it."""

    path: KeyPath
    message: str
    location: Location | None = None

    def __str__(self) -> str:
        places = [str(self.location)] if self.location else []
        places += [format_path(self.path)] if self.path else []
        return ": ".join([*places, self.message])


class LoaderError(Exception):
    """Base of what the loader raises on purpose: ``problems`` holds everything that was found."""

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems: tuple[ConfigProblem, ...] = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems[:MAX_PRINTED]]
        hidden = len(self.problems) - len(lines)
        return "\n".join([*lines, f"... and {hidden} more"] if hidden else lines)


class ConfigError(LoaderError):
    """The configuration cannot be used: its author has to change it."""


class PluginLoadError(LoaderError):
    """A plugin that the configuration names cannot be found or imported; the cause, if any, is ``__cause__``."""


def format_path(path: KeyPath) -> str:
    """Write a path the way it would be addressed: ``plugin[0].config."odd key"``."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + quote_key(key)
    return text


def quote_key(key: str) -> str:
    """A key as TOML would have it: bare where that is possible."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A closing half-sentence: the nearest known word, or else all of them."""
    import difflib

    words = sorted(known)
    close = difflib.get_close_matches(word[:200], words, n=1)
    if close:
        return f"did you mean {quoted(close[0])}?"
    return f"known: {shorten(', '.join(words))}" if words else "none is known"


def shorten(text: str, limit: int = 300) -> str:
    """Keep a message readable whatever it quotes."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def quoted(word: str) -> str:
    """A word that somebody else wrote, safe to print: one line, no control characters, not too long."""
    return repr(shorten(word, 60))


def kind_of(value: object) -> str:
    """The TOML name of a value's type, with its article."""
    names = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", type(None): "nothing"}
    if type(value) in names:
        return names[type(value)]
    if isinstance(value, (list, tuple)):
        return "an array"
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"
