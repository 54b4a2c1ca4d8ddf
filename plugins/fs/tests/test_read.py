"""Windows of text files."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from dsh_plugin_fs import _lines
from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._limits import Limits, Poll, never
from dsh_plugin_fs._read import Window, read_window
from dsh_plugin_fs._roots import Roots


def read(roots: Roots, offset: int = 1, limit: int = 2_000, poll: Poll = never, **limits: int) -> Window:
    return read_window(roots, "f", offset, limit, Limits(**limits), poll)


def texts(window: Window) -> list[str]:
    return [line.text for line in window.lines]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\n", [""]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        ("é\u2028ü\x0bx\rz\n".encode(), ["é\u2028ü\x0bx\rz"]),
    ],
)
def test_lines_end_at_lf_or_crlf_and_nowhere_else(root: Path, roots: Roots, data: bytes, lines: list[str]) -> None:
    (root / "f").write_bytes(data)
    window = read(roots)
    assert texts(window) == lines
    assert window.total_lines == len(lines)
    assert window.next_offset is None


@pytest.mark.parametrize("block", [1, 3, 7, 64])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_window_is_the_same_whatever_the_block_size(
    root: Path, roots: Roots, monkeypatch: pytest.MonkeyPatch, block: int, end: str
) -> None:
    monkeypatch.setattr(_lines, "BLOCK_BYTES", block)
    (root / "f").write_text("\n".join(f"line {n}" for n in range(1, 31)) + end)
    for offset in (1, 2, 15, 29, 30):
        window = read(roots, offset, 4)
        assert texts(window) == [f"line {n}" for n in range(offset, min(offset + 4, 31))]
        assert window.total_lines == 30
        assert window.next_offset == (offset + 4 if offset + 4 <= 30 else None)


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_window_behind_the_end_is_empty_and_knows_the_total(root: Path, roots: Roots, end: str) -> None:
    (root / "f").write_text("a\nb" + end)
    window = read(roots, 3)
    assert (window.offset, window.lines, window.total_lines) == (3, (), 2)
    assert read(roots, 300).total_lines == 2


def test_a_window_ends_where_its_bytes_run_out(root: Path, roots: Roots) -> None:
    (root / "f").write_text("0123456789\n" * 10)
    window = read(roots, max_read_bytes=35)
    assert len(window.lines) == 3
    assert window.next_offset == 4
    assert window.total_lines == 10


def test_a_long_line_is_cut_and_says_by_how_much(root: Path, roots: Roots) -> None:
    (root / "f").write_text("é" * 100_000 + "\nnext\n")
    window = read(roots, max_line_chars=10)
    assert window.lines[0].text == "é" * 10
    assert window.lines[0].cut == 2 * 99_990
    assert window.lines[1].text == "next"


def test_reading_on_from_next_offset_gives_the_whole_file(root: Path, roots: Roots) -> None:
    lines = [f"{n} " + "x" * (n % 50) for n in range(500)]
    (root / "f").write_text("\n".join(lines))
    got: list[str] = []
    offset: int | None = 1
    while offset:
        window = read(roots, offset, 37, max_read_bytes=400)
        got += texts(window)
        offset = window.next_offset
    assert got == lines


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"PNG\0\1\2", "byte 3 is NUL"), (b"caf\xe9\n", "byte 3 is no UTF-8"), (b"\xff\xfea\0", "UTF-16")],
)
def test_a_binary_file_is_named_as_such_with_its_size(root: Path, roots: Roots, data: bytes, says: str) -> None:
    (root / "f").write_bytes(data)
    with pytest.raises(FsError, match=says) as caught:
        read(roots)
    assert caught.value.code == "FS_IS_BINARY"
    assert f"binary file of {len(data)} bytes" in caught.value.message


def test_bytes_that_are_no_text_further_on_are_named_by_offset(root: Path, roots: Roots) -> None:
    (root / "f").write_bytes(b"x" * 9_000 + b"\nab\xff\n" + b"n\0\nlast\n")
    with pytest.raises(FsError, match="byte 9003 in line 2") as caught:
        read(roots)
    assert caught.value.code == "FS_NOT_UTF8"
    with pytest.raises(FsError, match="byte 9006 in line 3") as caught:
        read(roots, 3)
    assert caught.value.code == "FS_IS_BINARY"
    assert texts(read(roots, 4)) == ["last"]


def test_a_character_across_the_first_block_is_no_reason_to_call_a_file_binary(root: Path, roots: Roots) -> None:
    (root / "f").write_text("x" * 8_191 + "é\n")
    assert read(roots, max_line_chars=9_000).lines[0].text.endswith("é")


def test_a_huge_file_is_read_by_window_in_bounded_time_and_memory(root: Path, roots: Roots) -> None:
    with (root / "f").open("wb") as file:
        file.write(b"head\n" * 2_000)
        file.truncate(700 * 1024 * 1024)
    start = time.thread_time()
    window = read(roots, 1_990, 5, max_scan_bytes=1024 * 1024)
    assert time.thread_time() - start < 1.0
    assert texts(window) == ["head"] * 5
    assert window.total_lines is None
    assert window.counted_lines >= 1_995
    assert window.next_offset == 1_995


def test_a_line_of_many_megabytes_is_never_held_whole(root: Path, roots: Roots) -> None:
    with (root / "f").open("wb") as file:
        file.write(b"x" * 50_000)
        file.truncate(64 * 1024 * 1024)
    window = read(roots, max_line_chars=10)
    assert window.lines[0].text == "x" * 10
    with (root / "f").open("rb") as file:
        kept = [len(line.head) for line in _lines.lines_from(file.fileno(), 0, 100, never)]
    assert kept == [100]


class StoppedError(Exception):
    """Somebody stopped the call."""


def test_a_read_stops_between_blocks(root: Path, roots: Roots) -> None:
    (root / "f").write_text("x\n" * 1_000_000)
    polls = 0

    def stop() -> None:
        nonlocal polls
        polls += 1
        if polls > 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        read(roots, 1_000_000, poll=stop)
    assert polls == 4
