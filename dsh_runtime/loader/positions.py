"""Where the keys and items of a TOML text stand, which the standard library's parser does not tell.

The scanner knows the outline of TOML and nothing of its values: it hops over strings and scalars and notes the line at
which every key and every array item begins. It accepts more than TOML does, so that a text which it gives up on is one
that the parser refuses too; whatever it is given, it ends in linear time, with what it has found so far. Because it
runs before the parser, it is also where a text that nests too deep or holds too much is turned away.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import NoReturn

from .errors import KeyPath

MAX_DEPTH = 64
MAX_VALUES = 50_000

_BLANK = r"(?:[ \t\r\n]++|#[^\n]*+)*+"
_BARE_KEY = r"[^\s=.\[\]{}#\"',]+"
_BARE_VALUE = r"[^,\]}#\n]+"
_STRING = (
    r'"""(?:[^\\"]++|\\.|"(?!""))*+"""(?:""|")?'
    r"|'''(?:[^']++|'(?!''))*+'''(?:''|')?"
    r'|"(?:[^\\"\n]++|\\.)*+"'
    r"|'[^'\n]*+'"
)


class TooMuchError(Exception):
    """A text that nests too deep, or holds more values than a config needs."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class _LostError(Exception):
    """The text is no TOML from here on."""


def scan(text: str) -> dict[KeyPath, int]:
    """Map the path of every table, key and array item of ``text`` to the line (from 1) where it begins."""
    scanner = _Scanner(text)
    with contextlib.suppress(_LostError):  # the parser says what is wrong, and where
        scanner.read_document()
    return scanner.lines


def nearest_line(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """The line of ``path``, or else of the closest thing around it."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return 1


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._text = text
        self._at = 0
        self._line, self._counted_to = 1, 0
        self._sizes: dict[KeyPath, int] = {}  # of the arrays of tables so far
        self._patterns = {p: re.compile(p, re.DOTALL) for p in (_BLANK, _BARE_KEY, _BARE_VALUE, _STRING)}

    def read_document(self) -> None:
        table: KeyPath = ()
        while self._skip_blank():
            if self._take("[["):
                table = self._read_array_header()
            elif self._take("["):
                table = self._read_table_header()
            else:
                self._read_pair(table)

    def _read_table_header(self) -> KeyPath:
        line = self._current_line()
        path = self._resolve(self._read_key(), line)
        self.lines[path] = line
        self._expect("]")
        return path

    def _read_array_header(self) -> KeyPath:
        line = self._current_line()
        *parents, name = self._read_key()
        self._expect("]]")
        array = (*self._resolve(parents, line), name)
        self.lines.setdefault(array, line)
        size = self._sizes[array] = self._sizes.get(array, 0) + 1
        item = (*array, size - 1)
        self._mark(item, line)
        return item

    def _resolve(self, keys: list[str], line: int) -> KeyPath:
        """The table that a header means: where a key names an array of tables, its last item."""
        path: KeyPath = ()
        for key in keys:
            path = (*path, key)
            self._mark(path, line, implied=True)
            if path in self._sizes:
                path = (*path, self._sizes[path] - 1)
        return path

    def _read_pair(self, table: KeyPath) -> None:
        line = self._current_line()
        path = table
        for key in self._read_key():
            path = (*path, key)
            self._mark(path, line, implied=True)
        self._expect("=")
        self.lines[path] = line
        self._skip_blank()
        self._read_value(path)

    def _read_value(self, path: KeyPath) -> None:
        if self._take("["):
            self._read_array(path)
        elif self._take("{"):
            self._read_inline_table(path)
        elif self._text[self._at : self._at + 1] in ('"', "'"):
            self._match(_STRING)
        else:
            self._match(_BARE_VALUE)

    def _read_array(self, path: KeyPath) -> None:
        index = 0
        while self._skip_blank() and not self._take("]"):
            self._mark((*path, index), self._current_line())
            self._read_value((*path, index))
            self._skip_blank()
            self._take(",")
            index += 1

    def _read_inline_table(self, path: KeyPath) -> None:
        while self._skip_blank() and not self._take("}"):
            self._read_pair(path)
            self._skip_blank()
            self._take(",")

    def _read_key(self) -> list[str]:
        keys = [self._read_key_part()]
        while self._take("."):
            keys.append(self._read_key_part())
            if len(keys) > MAX_DEPTH:
                self._refuse_depth(self._current_line())
        return keys

    def _read_key_part(self) -> str:
        self._skip_blank()
        if self._text[self._at : self._at + 1] in ('"', "'"):
            part = _unquote(self._match(_STRING))
        else:
            part = self._match(_BARE_KEY)
        self._skip_blank()
        return part

    def _mark(self, path: KeyPath, line: int, *, implied: bool = False) -> None:
        if len(path) > MAX_DEPTH:
            self._refuse_depth(line)
        if len(self.lines) >= MAX_VALUES:
            raise TooMuchError(f"holds more than {MAX_VALUES} values; split it or make it smaller", line)
        if not implied or path not in self.lines:
            self.lines[path] = line

    def _refuse_depth(self, line: int) -> NoReturn:
        raise TooMuchError(f"nests deeper than {MAX_DEPTH} levels; flatten it", line)

    def _skip_blank(self) -> bool:
        """Go to the next token; say whether there is one."""
        self._match(_BLANK)
        return self._at < len(self._text)

    def _take(self, token: str) -> bool:
        found = self._text.startswith(token, self._at)
        self._at += len(token) if found else 0
        return found

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise _LostError

    def _match(self, pattern: str) -> str:
        found = self._patterns[pattern].match(self._text, self._at)
        if found is None:
            raise _LostError
        self._at = found.end()
        return found.group()

    def _current_line(self) -> int:
        self._line += self._text.count("\n", self._counted_to, self._at)
        self._counted_to = self._at
        return self._line


def _unquote(raw: str) -> str:
    if "\\" not in raw:
        return raw[1:-1]
    import tomllib

    try:
        return str(tomllib.loads(f"key = {raw}")["key"])
    except tomllib.TOMLDecodeError:
        raise _LostError from None
