"""Read a window of a text file."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator

from attrs import field, frozen

from dsh_plugin_fs._errors import FsError, os_errors
from dsh_plugin_fs._limits import Limits, Poll, never
from dsh_plugin_fs._lines import RawLine, lines_from, skip_lines
from dsh_plugin_fs._roots import Roots
from dsh_plugin_fs._text import BOM, HEAD_BYTES, check_not_binary
from dsh_plugin_fs._walk import Walk


@frozen
class WindowLine:
    """One line of a window; ``cut`` is how many bytes of it are left out."""

    number: int
    text: str
    cut: int = 0


@frozen
class Window:
    """Some lines of a file.

    ``total_lines`` is ``None`` if the file is too long to count; then it has more than ``counted_lines``.
    ``next_offset`` is where to read on, ``None`` at the end of the file.
    """

    path: str
    offset: int
    lines: tuple[WindowLine, ...]
    size: int
    total_lines: int | None
    counted_lines: int
    next_offset: int | None = field(default=None)


def read_window(roots: Roots, path: str, offset: int, limit: int, limits: Limits, poll: Poll = never) -> Window:
    """Read ``limit`` lines from line ``offset`` (from 1) on, or as many as the limits allow."""
    if offset < 1 or limit < 1:
        raise FsError("FS_BAD_WINDOW", f"'offset' is {offset} and 'limit' {limit}; both count lines, from 1 on")
    target = roots.locate(path)
    if target.is_directory:
        raise FsError("FS_NOT_A_FILE", f"path '{path}' names a directory; name a file in it")
    with os_errors(path), Walk(target) as walk:
        file, name = walk.open_file(target.names)
        try:
            return _read_open(file, roots.show(walk.root, [*walk.names, name]), offset, limit, limits, poll)
        finally:
            os.close(file)


def _read_open(file: int, shown: str, offset: int, limit: int, limits: Limits, poll: Poll) -> Window:
    size = os.fstat(file).st_size
    check_not_binary(os.pread(file, HEAD_BYTES, 0), size, shown)
    before = skip_lines(file, 0, offset - 1, poll)
    if before.at_end:
        return Window(shown, offset, (), size, before.lines, before.lines)
    keep = 4 * limits.max_line_chars + len(BOM) + 1
    raw = lines_from(file, before.position, keep, poll)
    lines, position = _take(raw, shown, offset, min(limit, limits.max_read_lines), limits)
    rest = skip_lines(file, position or before.position, None, poll, limits.max_scan_bytes)
    counted = before.lines + len(lines) + rest.lines
    following = offset + len(lines) if rest.lines or not rest.at_end else None
    return Window(shown, offset, tuple(lines), size, counted if rest.at_end else None, counted, following)


def _take(
    raw: Iterator[RawLine], shown: str, offset: int, limit: int, limits: Limits
) -> tuple[list[WindowLine], int | None]:
    """Take lines until ``limit`` or the bytes run out; also return where the next one begins."""
    lines: list[WindowLine] = []
    room, position = limits.max_read_bytes, None
    for number, line in enumerate(raw, offset):
        taken = _to_text(line, number, shown, limits.max_line_chars)
        room -= len(taken.text.encode()) + 1
        if len(lines) == limit or (room < 0 and lines):
            break
        lines.append(taken)
        position = line.end
    return lines, position


def _to_text(line: RawLine, number: int, shown: str, max_chars: int) -> WindowLine:
    whole = line.size <= len(line.head)
    data, start = line.head, line.start
    if start == 0 and data.startswith(BOM):
        data, start = data[len(BOM) :], len(BOM)
    if whole and line.ended:
        data = data.removesuffix(b"\r")
    nul = data.find(b"\0")
    if nul >= 0:
        where = f"byte {start + nul} in line {number} is NUL"
        raise FsError("FS_IS_BINARY", f"'{shown}' is a binary file ({where}); read lines before or after it")
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError as error:
        where = f"byte {start + error.start} in line {number} (0x{data[error.start]:02x}) does not fit"
        raise FsError("FS_NOT_UTF8", f"'{shown}' is no UTF-8 text: {where}; read lines before or after it") from error
    kept = text[:max_chars]
    cut = line.size - (start - line.start) - len(kept.encode())
    return WindowLine(number, kept, cut if len(kept) < len(text) or not whole else 0)
