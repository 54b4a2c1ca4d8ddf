"""Read one config file into a tree: its bytes, its text, its TOML, and the line of everything in it."""

from __future__ import annotations

import re
from pathlib import Path

from .errors import ConfigError, ConfigProblem, KeyPath, Location, shorten
from .files import UnreadableFileError, read_regular_file
from .nodes import Table, build_tree
from .positions import TooMuchError, nearest_line, scan

MAX_FILE_BYTES = 1024 * 1024

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def read_document(path: Path) -> Table:
    """Return the tree of a TOML file, or raise a ``ConfigError`` that says what is wrong with it and where."""
    file = str(path)
    try:
        data = read_regular_file(path, MAX_FILE_BYTES)
    except UnreadableFileError as error:
        raise ConfigError([ConfigProblem((), f"the config file '{file}' {error}")]) from error
    return parse_document(_decode(data, file), file)


def parse_document(text: str, file: str) -> Table:
    """Return the tree of a TOML text that stands in ``file``."""
    try:
        lines = scan(text)
    except TooMuchError as error:
        raise _syntax_error(f"the config file {error.message}", Location(file, error.line)) from None
    tree = build_tree(_parse(text, file), lambda path: _place(lines, path, file))
    assert isinstance(tree, Table)
    return tree


def _place(lines: dict[KeyPath, int], path: KeyPath, file: str) -> Location:
    return Location(file, nearest_line(lines, path))


def _decode(data: bytes, file: str) -> str:
    if data.startswith(_UTF16_BOMS):
        raise _syntax_error("the file is UTF-16; TOML is UTF-8, so save it as that", Location(file, 1))
    data = data.removeprefix(_UTF8_BOM)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        place = Location(file, before.count(b"\n") + 1, column)
        message = f"byte 0x{data[error.start]:02x} is not UTF-8, which TOML is written in; save the file as UTF-8"
        raise _syntax_error(message, place) from error


def _parse(text: str, file: str) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise _syntax_error("the config file nests too deep; flatten it", Location(file, 1)) from error
    except ValueError as error:  # a TOMLDecodeError, or an integer too long to convert
        message, place = _explain(str(error), text, file)
        raise _syntax_error(message, place) from error


def _explain(message: str, text: str, file: str) -> tuple[str, Location]:
    """Split the place off the parser's message."""
    what = shorten(re.sub(r" \(at .*\)$", "", message))
    found = re.search(r"\(at line (\d+), column (\d+)\)$", message)
    if found:
        return f"malformed TOML: {what}", Location(file, int(found[1]), int(found[2]))
    line = text.count("\n") + 1 if message.endswith("(at end of document)") else 1
    return f"malformed TOML: {what}", Location(file, line)


def _syntax_error(message: str, place: Location) -> ConfigError:
    return ConfigError([ConfigProblem((), message, place)])
