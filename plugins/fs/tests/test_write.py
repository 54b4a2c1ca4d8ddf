"""Writing and editing files on disk."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._roots import Roots
from dsh_plugin_fs._write import Writer, Written


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_gets_the_mode_that_the_umask_leaves(root: Path, writer: Writer) -> None:
    old = os.umask(0o027)
    try:
        written = writer.write("f", "text")
    finally:
        os.umask(old)
    assert written.created
    assert mode_of(root / "f") == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o4755, 0o666])
def test_an_old_file_keeps_its_mode(root: Path, writer: Writer, mode: int) -> None:
    (root / "f").write_text("old")
    (root / "f").chmod(mode)
    writer.write("f", "new")
    assert mode_of(root / "f") == mode
    writer.edit("f", "new", "newer")
    assert mode_of(root / "f") == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a file away")
def test_an_old_file_keeps_its_owner(root: Path, writer: Writer) -> None:
    (root / "f").write_text("old")
    os.chown(root / "f", 1234, 1235)
    writer.write("f", "new")
    seen = (root / "f").stat()
    assert (seen.st_uid, seen.st_gid) == (1234, 1235)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everything")
def test_a_read_only_file_is_denied(root: Path, writer: Writer) -> None:
    (root / "f").write_text("old")
    (root / "f").chmod(0o444)
    with pytest.raises(FsError) as caught:
        writer.write("f", "new")
    assert caught.value.code == "FS_DENIED"


@pytest.mark.parametrize(
    ("old", "content", "result"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\ny\n"),
        (b"a\r\nb\n", "x\ny\r\n", b"x\ny\r\n"),
        (b"\xef\xbb\xbfa\r\n", "x\n", b"\xef\xbb\xbfx\r\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffx", b"\xef\xbb\xbfx"),
        (b"\0\1", "x\n", b"x\n"),
        (b"", "x\r\n", b"x\r\n"),
    ],
)
def test_a_rewritten_file_keeps_byte_order_mark_and_line_endings(
    root: Path, writer: Writer, old: bytes, content: str, result: bytes
) -> None:
    (root / "f").write_bytes(old)
    writer.write("f", content)
    assert (root / "f").read_bytes() == result


def test_an_edit_keeps_byte_order_mark_line_endings_and_final_newline(root: Path, writer: Writer) -> None:
    (root / "f").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    written = writer.edit("f", "one\ntwo", "1\n2\n2b")
    assert (root / "f").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n2b\r\nthree"
    assert written.line_endings == "crlf"


def test_missing_directories_are_made(root: Path, writer: Writer) -> None:
    assert writer.write("a/b/c.txt", "x").path == "a/b/c.txt"
    assert (root / "a/b/c.txt").read_text() == "x"


def test_a_write_through_a_link_changes_the_file_and_leaves_the_link(root: Path, writer: Writer) -> None:
    (root / "d").mkdir()
    (root / "link").symlink_to("d/f")
    assert writer.write("link", "x").path == "d/f"
    assert (root / "link").is_symlink()
    assert (root / "d/f").read_text() == "x"


def test_an_edit_of_bytes_that_are_no_utf8_names_the_offset_and_changes_nothing(root: Path, writer: Writer) -> None:
    data = b"x" * 10_000 + b"\xe9 old"
    (root / "f").write_bytes(data)
    with pytest.raises(FsError, match="byte 10000 ") as caught:
        writer.edit("f", "old", "new")
    assert caught.value.code == "FS_NOT_UTF8"
    assert (root / "f").read_bytes() == data


def test_a_binary_file_is_not_edited(root: Path, writer: Writer) -> None:
    (root / "f").write_bytes(b"a\0b")
    with pytest.raises(FsError) as caught:
        writer.edit("f", "a", "b")
    assert caught.value.code == "FS_IS_BINARY"


def test_half_a_surrogate_pair_is_refused(root: Path, writer: Writer) -> None:
    with pytest.raises(FsError) as caught:
        writer.write("f", "\ud83d")
    assert caught.value.code == "FS_NOT_UTF8"
    assert os.listdir(root) == []


def test_what_is_too_large_is_refused(root: Path, roots: Roots) -> None:
    writer = Writer(roots, Limits(max_write_bytes=10))
    (root / "f").write_text("x" * 11)
    calls: list[Callable[[], Written]] = [
        lambda: writer.write("g", "x" * 11),
        lambda: writer.write("g", "é" * 6),
        lambda: writer.edit("f", "x", "y"),
    ]
    for call in calls:
        with pytest.raises(FsError) as caught:
            call()
        assert caught.value.code == "FS_TOO_LARGE"
    assert os.listdir(root) == ["f"]


def test_a_file_that_is_too_large_to_compare_can_be_replaced(root: Path, roots: Roots) -> None:
    (root / "f").write_bytes(b"line\r\n" * 10_000)
    written = Writer(roots, Limits(max_write_bytes=1_000)).write("f", "a\nb\n")
    assert written.hunks is None
    assert (root / "f").read_bytes() == b"a\r\nb\r\n"


@pytest.mark.parametrize("function", ["write", "fsync", "replace", "fchmod"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    root: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    (root / "f").write_text("old")

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(FsError, match="No space left"):
        writer.write("f", "new")
    monkeypatch.undo()
    assert os.listdir(root) == ["f"]
    assert (root / "f").read_text() == "old"


def test_a_file_that_someone_else_changes_meanwhile_is_not_overwritten(
    root: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("old")
    fsync = os.fsync

    def meanwhile(file: int) -> None:
        fsync(file)
        (root / "f").write_text("theirs")

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(FsError) as caught:
        writer.edit("f", "old", "new")
    assert caught.value.code == "FS_CHANGED"
    assert (root / "f").read_text() == "theirs"
    assert os.listdir(root) == ["f"]


def test_a_write_that_is_stopped_changes_nothing(root: Path, writer: Writer) -> None:
    (root / "f").write_text("old")

    def stop() -> None:
        raise KeyError("stopped")

    with pytest.raises(KeyError):
        writer.write("f", "new", stop)
    assert (root / "f").read_text() == "old"


def test_a_reader_sees_the_old_or_the_new_file_and_never_a_part(root: Path, writer: Writer) -> None:
    size = 200_000
    (root / "f").write_text("0" * size)
    seen: set[tuple[str, int]] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            data = (root / "f").read_text()
            seen.add(("".join(sorted(set(data))), len(data)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(1, 101):
        writer.write("f", str(number % 10) * size)
    done.set()
    watcher.join()
    assert seen <= {(str(digit), size) for digit in range(10)}
    assert len(seen) > 1


def test_edits_that_run_at_once_are_all_there_in_the_end(root: Path, writer: Writer) -> None:
    (root / "f").write_text("".join(f"<{n}>" for n in range(40)))
    threads = [threading.Thread(target=writer.edit, args=("f", f"<{n}>", f"[{n}]")) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (root / "f").read_text() == "".join(f"[{n}]" for n in range(40))
