"""The file: whole lines, a bounded history, and any number of processes."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from dsh_plugin_audit_jsonl._file import AuditFile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def audit_file(path: Path, *, max_bytes: int = 10**6, keep: int = 3, fsync: bool = False) -> AuditFile:
    return AuditFile(path, max_bytes=max_bytes, keep=keep, fsync=fsync)


def history(path: Path) -> list[bytes]:
    """All lines that are there, the oldest first."""
    older = sorted(path.parent.glob(f"{path.name}.*"), key=lambda old: -int(old.suffix[1:]))
    return [line for file in [*older, path] if file.exists() for line in file.read_bytes().splitlines(keepends=True)]


def lines(first: int, last: int, width: int = 10) -> list[bytes]:
    return [b"%0*d\n" % (width - 1, number) for number in range(first, last)]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_only_the_owner_may_read_a_new_file(log: Path) -> None:
    old = os.umask(0)
    try:
        audit_file(log).open()
    finally:
        os.umask(old)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_file_that_others_may_read_is_closed_to_them(log: Path) -> None:
    log.touch(mode=0o644)
    log.chmod(0o644)
    audit_file(log).open()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_lines_are_added_behind_what_is_there(log: Path) -> None:
    log.write_bytes(b"old\n")
    assert audit_file(log).append(lines(0, 2)).written == 2
    assert history(log) == [b"old\n", *lines(0, 2)]


def test_a_file_is_moved_aside_before_it_grows_too_long(log: Path) -> None:
    file = audit_file(log, max_bytes=35)
    file.append(lines(0, 8))
    assert history(log) == lines(0, 8)
    assert {path.name: path.stat().st_size for path in log.parent.iterdir()} == {
        "audit.jsonl": 20,
        "audit.jsonl.1": 30,
        "audit.jsonl.2": 30,
    }


def test_no_more_old_files_are_kept_than_the_config_says(log: Path) -> None:
    audit_file(log, max_bytes=10, keep=2).append(lines(0, 9))
    assert history(log) == lines(6, 9)


def test_a_line_that_is_longer_than_a_file_may_be_is_written_all_the_same(log: Path) -> None:
    audit_file(log, max_bytes=15).append([*lines(0, 1), b"x" * 99 + b"\n", *lines(1, 2)])
    assert history(log) == [*lines(0, 1), b"x" * 99 + b"\n", *lines(1, 2)]


def test_a_gap_in_the_history_is_closed_before_anything_is_dropped(log: Path) -> None:
    for number in (1, 3):
        log.with_name(f"audit.jsonl.{number}").write_bytes(b"%d\n" % number)
    audit_file(log, max_bytes=10).append(lines(0, 2))
    assert history(log) == [b"3\n", b"1\n", *lines(0, 2)]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(widths=st.lists(st.integers(1, 60), max_size=40), max_bytes=st.integers(1, 200))
def test_whatever_the_lines_the_history_holds_them_all_in_order(
    tmp_path_factory: pytest.TempPathFactory, widths: list[int], max_bytes: int
) -> None:
    log = tmp_path_factory.mktemp("history") / "audit.jsonl"
    written = [b"x" * width + b"\n" for width in widths]
    file = audit_file(log, max_bytes=max_bytes, keep=100)
    file.open()
    assert file.append(written).written == len(written)
    assert history(log) == written
    assert all(path.stat().st_size <= max(max_bytes, 61) for path in log.parent.iterdir())


def test_a_file_that_was_moved_by_somebody_else_is_made_anew(log: Path) -> None:
    file = audit_file(log)
    file.append(lines(0, 1))
    log.rename(log.with_name("audit.jsonl.1"))
    file.append(lines(1, 2))
    assert history(log) == lines(0, 2)
    assert log.read_bytes() == lines(1, 2)[0]


def test_a_full_disk_stops_at_a_line_and_says_how_many_are_written(log: Path) -> None:
    file = audit_file(log)
    with room_for(25):
        progress = file.append(lines(0, 5))
    assert progress.written == 2
    assert progress.error is not None


def test_a_line_that_was_cut_short_is_written_again_on_a_line_of_its_own(log: Path) -> None:
    file = audit_file(log)
    with room_for(25):
        file.append(lines(0, 5))
    assert file.append(lines(2, 5)).written == 3
    assert history(log) == [*lines(0, 2), b"00000\n", *lines(2, 5)]


def test_a_line_that_lacks_its_line_break_alone_is_not_written_twice(log: Path) -> None:
    file = audit_file(log)
    with room_for(29):
        progress = file.append(lines(0, 3))
    assert progress.written == 3
    file.append(lines(3, 4))
    assert history(log) == lines(0, 4)


def test_a_line_that_another_process_left_cut_short_takes_no_other_with_it(log: Path) -> None:
    log.write_bytes(b'{"half": ')
    audit_file(log).append(lines(0, 1))
    assert history(log) == [b'{"half": \n', *lines(0, 1)]


def test_lines_count_as_unsynced_until_they_are_on_the_disk(log: Path) -> None:
    file = audit_file(log, fsync=True)
    file.append(lines(0, 1))
    assert not file.unsynced
    file.close()
    assert history(log) == lines(0, 1)


WRITER = """
import sys, trio
from dsh_hookspecs import AbortController
from dsh_runtime import ToolExecutionInput, open_host

async def main(name, path):
    row = {"id": "audit", "use": "audit-jsonl", "config": {"path": path, "max_bytes": 4000, "keep": 1000}}
    async with open_host({"plugin": [row]}) as host:
        for number in range(200):
            call = ToolExecutionInput(f"{name}-{number}", "nothing", {}, AbortController().signal)
            await host.ctx.tools.execute(call)
            if number % 20 == 0:
                await trio.sleep(0.001)

trio.run(main, *sys.argv[1:])
"""


def test_several_processes_write_to_one_file_and_move_it_without_losing_a_record(log: Path) -> None:
    running = [subprocess.Popen([sys.executable, "-c", WRITER, name, str(log)]) for name in "abc"]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    calls = [json.loads(line)["call"] for line in history(log)]
    assert sorted(calls) == sorted(f"{name}-{number}" for name in "abc" for number in range(200))
    assert len(list(log.parent.iterdir())) > 10


def test_records_that_wait_are_in_the_file_when_the_host_has_ended(log: Path) -> None:
    program = WRITER.replace("await trio.sleep(0.001)", "pass")
    subprocess.run([sys.executable, "-c", program, "a", str(log)], check=True, timeout=60)
    assert [json.loads(line)["call"] for line in history(log)] == [f"a-{number}" for number in range(200)]
