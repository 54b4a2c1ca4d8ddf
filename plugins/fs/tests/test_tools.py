"""The tools as the runtime calls them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from dsh_hookspecs import DiffCall, DiffResult, FileDiff, FileLocation, GenericCall, ReadResult, SearchResult
from dsh_runtime import AbortController, ToolExecutionInput, open_host

import dsh_plugin_fs
from dsh_plugin_fs import Config

TOOLS = ["fs_read", "fs_write", "fs_edit", "fs_glob", "fs_grep"]
Call: TypeAlias = Callable[..., Awaitable[Any]]


@pytest.fixture
async def host(root: Path) -> AsyncIterator[Any]:
    async with open_host() as host:
        await host.ctx.plugin(dsh_plugin_fs, Config(roots=[root], max_results=3, max_read_lines=50)).wait()
        yield host


@pytest.fixture
def call(host: Any) -> Call:
    async def call(name: str, **arguments: Any) -> Any:
        signal = AbortController().signal
        return await host.ctx.tools.execute(ToolExecutionInput("c1", name, arguments, signal))

    return call


def views(host: Any, name: str, arguments: dict[str, Any], result: Any) -> tuple[Any, Any]:
    definition = host.ctx.tools.get(name)
    return definition.present_call(arguments), definition.present_result(arguments, result)


def text(result: Any) -> str:
    (block,) = result.content
    return str(block["text"])


async def test_five_tools_come_and_go_with_the_plugin(root: Path) -> None:
    async with open_host() as host:
        fiber = host.ctx.plugin(dsh_plugin_fs, Config(roots=[root]))
        await fiber.wait()
        assert [schema["name"] for schema in host.ctx.tools.schemas()] == TOOLS
        descriptors = len(os.listdir("/proc/self/fd"))
        await fiber.dispose()
        assert host.ctx.tools.schemas() == []
        assert len(os.listdir("/proc/self/fd")) == descriptors - 1


async def test_a_root_that_is_missing_fails_the_plugin_by_name(tmp_path: Path) -> None:
    async with open_host() as host:
        with pytest.raises(dsh_plugin_fs.FsError, match="correct 'roots'"):
            await host.ctx.plugin(dsh_plugin_fs, Config(roots=[tmp_path / "none"])).wait()


async def test_reads_and_searches_run_side_by_side_and_changes_alone(host: Any) -> None:
    safe = [host.ctx.tools.get(name).is_concurrency_safe({}) for name in TOOLS]
    assert safe == [True, False, False, True, True]


async def test_read_gives_numbered_lines_and_a_read_view(root: Path, host: Any, call: Call) -> None:
    (root / "f.py").write_text("one\ntwo\nthree\n")
    arguments = {"path": "f.py", "offset": 2, "limit": 1}
    result = await call("fs_read", **arguments)
    assert text(result) == "     2\ttwo\n(lines 2 to 2 of 3 lines; read on with offset 3)"
    assert result.value["next_offset"] == 3
    pending, completed = views(host, "fs_read", arguments, result)
    assert pending == GenericCall(title="Read f.py", kind="read", locations=[FileLocation("f.py", 2)])
    assert isinstance(completed, ReadResult)
    assert (completed.path, completed.offset, completed.total_lines, completed.lang) == ("f.py", 2, 3, "python")
    assert [(line.number, line.text) for line in completed.lines] == [(2, "two")]


async def test_a_view_of_no_lines_keeps_the_offset(root: Path, host: Any, call: Call) -> None:
    (root / "f").write_text("one\n")
    result = await call("fs_read", path="f", offset=9)
    _, completed = views(host, "fs_read", {"path": "f", "offset": 9}, result)
    assert (completed.offset, completed.lines, completed.total_lines) == (9, (), 1)


@pytest.mark.parametrize("window", [{"offset": 0}, {"limit": 0}, {"offset": -3}])
async def test_a_window_that_starts_nowhere_is_refused(root: Path, call: Call, window: dict[str, int]) -> None:
    (root / "f").write_text("one\n")
    assert (await call("fs_read", path="f", **window)).error.info.code == "FS_BAD_WINDOW"


async def test_write_gives_a_diff_view_of_the_new_file(root: Path, host: Any, call: Call) -> None:
    arguments = {"path": "d/f", "content": "one\n"}
    result = await call("fs_write", **arguments)
    assert text(result) == "Created 'd/f' (4 bytes)."
    assert (root / "d/f").read_text() == "one\n"
    pending, completed = views(host, "fs_write", arguments, result)
    diff = FileDiff("d/f", None, "one\n")
    assert pending == DiffCall("Write d/f", [diff], locations=[FileLocation("d/f")])
    assert completed == DiffResult([diff], "Created d/f")


async def test_edit_gives_a_diff_view_with_lines_around_the_change(root: Path, host: Any, call: Call) -> None:
    (root / "f").write_text("".join(f"{n}\n" for n in range(1, 11)))
    arguments = {"path": "f", "old_text": "5", "new_text": "five"}
    result = await call("fs_edit", **arguments)
    pending, completed = views(host, "fs_edit", arguments, result)
    assert pending.diffs == (FileDiff("f", "5", "five"),)
    assert completed.diffs == (FileDiff("f", "2\n3\n4\n5\n6\n7\n8\n", "2\n3\n4\nfive\n6\n7\n8\n"),)


async def test_glob_gives_a_search_view_that_says_what_is_missing(root: Path, host: Any, call: Call) -> None:
    for number in range(5):
        (root / f"{number}.txt").write_text("x")
    result = await call("fs_glob", pattern="*.txt")
    assert text(result) == "0.txt\n1.txt\n2.txt\n(5 files, the first 3 listed; narrow the search)"
    pending, completed = views(host, "fs_glob", {"pattern": "*.txt"}, result)
    assert (pending.kind, pending.title) == ("search", "Search . for *.txt")
    assert completed == SearchResult("paths", True, 5, paths=["0.txt", "1.txt", "2.txt"], title="*.txt: 5 files")


async def test_grep_gives_a_search_view_grouped_by_file(root: Path, host: Any, call: Call) -> None:
    (root / "a").write_text("x1\n-\nx2\n")
    (root / "b").write_bytes(b"x\0")
    arguments = {"pattern": r"x\d", "regex": True}
    result = await call("fs_grep", **arguments)
    assert text(result) == "a\n     1\tx1\n     3\tx2\n(2 matching lines; skipped: 1 binary)"
    _, completed = views(host, "fs_grep", arguments, result)
    assert (completed.shape, completed.truncated, completed.total) == ("matches", False, 2)
    assert [(match.line_number, match.line) for match in completed.files[0].matches] == [(1, "x1"), (3, "x2")]


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("fs_read", {"path": "../x"}, "FS_OUTSIDE_ROOT"),
        ("fs_read", {"path": "none"}, "FS_NOT_FOUND"),
        ("fs_edit", {"path": "f", "old_text": "x", "new_text": "y"}, "FS_NOT_UNIQUE"),
        ("fs_edit", {"path": "none", "old_text": "x", "new_text": "y"}, "FS_NOT_FOUND"),
        ("fs_glob", {"pattern": "../*"}, "FS_BAD_PATTERN"),
        ("fs_grep", {"pattern": "(", "regex": True}, "FS_BAD_PATTERN"),
        ("fs_write", {"path": "f"}, "INVALID_ARGS"),
    ],
)
async def test_what_goes_wrong_has_a_code_and_no_completed_view(
    root: Path, host: Any, call: Call, name: str, arguments: dict[str, Any], code: str
) -> None:
    (root / "f").write_text("x x")
    result = await call(name, **arguments)
    assert result.error.info.code == code
    assert host.ctx.tools.get(name).present_result(arguments, result) is None


async def test_a_call_that_is_stopped_says_so(root: Path, host: Any) -> None:
    (root / "f").write_text("x\n" * 2_000_000)
    controller = AbortController()
    definition = host.ctx.tools.get("fs_read")
    controller.abort("enough")

    class Exec:
        signal = controller.signal

    with pytest.raises(Exception, match="enough"):
        definition.execute({"path": "f"}, Exec)
