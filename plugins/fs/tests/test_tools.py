"""The tools as the runtime calls them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import dsh_plugin_fs
import pytest
from dsh_hookspecs import DiffCall, DiffResult, FileDiff, FileLocation, GenericCall, ReadResult, SearchResult
from dsh_plugin_fs import Config

from dsh_runtime import AbortController, ToolExecutionInput, open_host
from dsh_runtime.loader.errors import ConfigError

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
        with pytest.raises(ConfigError, match=f"'{tmp_path}/none' .*'{tmp_path}/gone' .*correct 'roots'"):
            wrong = {"roots": [str(tmp_path / "none"), str(tmp_path), str(tmp_path / "gone")]}
            await host.ctx.plugin(dsh_plugin_fs, wrong).wait()


@pytest.mark.parametrize(
    ("name", "arguments", "mode"),
    [
        ("fs_read", {"path": "f"}, "parallel"),
        ("fs_write", {"path": "f", "content": ""}, "exclusive"),
        ("fs_edit", {"path": "f", "old_text": "a", "new_text": "b"}, "exclusive"),
        ("fs_glob", {"pattern": "*"}, "parallel"),
        ("fs_grep", {"pattern": "a"}, "parallel"),
    ],
)
async def test_reads_and_searches_run_side_by_side_and_changes_alone(
    host: Any, name: str, arguments: dict[str, Any], mode: str
) -> None:
    call = ToolExecutionInput("c1", name, arguments, AbortController().signal)
    assert host.ctx.tools.execution_mode(call) == mode


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
    ],
)
async def test_what_goes_wrong_has_a_code_and_no_completed_view(
    root: Path, host: Any, call: Call, name: str, arguments: dict[str, Any], code: str
) -> None:
    (root / "f").write_text("x x")
    result = await call(name, **arguments)
    assert result.error.info.code == code
    assert host.ctx.tools.get(name).present_result(arguments, result) is None


async def test_arguments_that_do_not_fit_are_refused_before_the_body(root: Path, call: Call) -> None:
    assert (await call("fs_write", path="f")).error.info.code == "INVALID_ARGS"
    assert (await call("fs_read", path="f", offset="1")).error.info.code == "INVALID_ARGS"


async def test_a_call_that_is_aborted_stops_at_the_next_block(
    root: Path, host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("x\n" * 2_000_000)
    controller = AbortController()
    blocks, pread = 0, os.pread

    def abort_meanwhile(file: int, size: int, at: int) -> bytes:
        nonlocal blocks
        blocks += 1
        controller.abort("enough")
        return pread(file, size, at)

    monkeypatch.setattr(os, "pread", abort_meanwhile)
    result = await host.ctx.tools.execute(ToolExecutionInput("c1", "fs_read", {"path": "f"}, controller.signal))
    assert result.error.info.code == "ABORTED"
    assert blocks == 1


async def test_a_config_may_be_a_plain_table(root: Path) -> None:
    (root / "f").write_text("one\n")
    async with open_host() as host:
        await host.ctx.plugin(dsh_plugin_fs, {"roots": [str(root)]}).wait()
        call = ToolExecutionInput("c1", "fs_read", {"path": "f"}, AbortController().signal)
        assert (await host.ctx.tools.execute(call)).value["total_lines"] == 1


@pytest.mark.parametrize(
    "config",
    [{"roots": []}, {"max_results": 0}, {"search_seconds": -1}, {"max_read_bytes": True}, {"exclude": ["../x"]}],
)
def test_a_config_that_does_not_hold_is_refused_by_key(config: dict[str, Any]) -> None:
    (key,) = config
    with pytest.raises(ValueError, match=key):
        Config(**{"roots": [Path(".")], **config})


async def test_calls_through_a_whole_batch_leave_the_host_as_it_was(root: Path, host: Any) -> None:
    (root / "f").write_text("0\n")
    before = len(os.listdir("/proc/self/fd"))
    steps = [("fs_edit", {"path": "f", "old_text": f"{n}\n", "new_text": f"{n + 1}\n"}) for n in range(20)]
    reads = [("fs_read", {"path": "f"})] * 20
    calls = [
        ToolExecutionInput(f"c{number}", name, arguments, AbortController().signal)
        for number, (name, arguments) in enumerate(step for pair in zip(steps, reads, strict=True) for step in pair)
    ]
    results = await host.ctx.tools.execute_batch(calls)
    assert [result.value["lines"][0]["text"] for result in results[1::2]] == [str(n) for n in range(1, 21)]
    assert len(os.listdir("/proc/self/fd")) == before
