"""Every attempt in the table of docs/code-mode.md on a whole host: it ends as the table says, leaves nothing, and
reaches no tool that policy has not seen."""

# ruff: noqa: A006 - listeners and bodies take their arguments by these names

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from attrs import define, field

from dsh_runtime import AbortController, Deny, ToolExecutionInput, define_tool, open_host

sys.path.insert(0, str(Path(__file__).parent))  # the kit stands beside the tests, which are no package
from code_attacks_kit import FORKING, HASTY, PATIENT, WRITING, Rows

PAGE: Final = Path(__file__).parents[2] / "docs" / "code-mode.md"
MIB: Final = 1024 * 1024
HOSTS: Final[dict[str, tuple[Rows, dict[str, Any]]]] = {
    "patient": (PATIENT, {"wall_time": 20.0, "spares": 2}),
    "hasty": (HASTY, {"wall_time": 0.7}),
    "forking": (FORKING, {"wall_time": 20.0, "processes": 40}),
    "writing": (WRITING, {"wall_time": 20.0, "file_bytes": 10_000}),
}


def test_the_table_of_the_page_is_what_is_tried_here() -> None:
    table = PAGE.read_text().partition("### What a hostile program comes to")[2].partition("\n\n*Ends as*")[0]
    rows = re.findall(r"^\| (.*?) \| ", table, re.MULTILINE)[1:]
    assert sorted(rows) == sorted(row for tried, _ in HOSTS.values() for row in tried)


@pytest.mark.parametrize("host", HOSTS)
async def test_an_attempt_ends_as_the_page_says_leaves_nothing_and_passes_no_policy_by(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows, settings = HOSTS[host]
    code = {"memory": 64 * MIB, "output_bytes": 10_000, "frame_bytes": MIB, "sub_calls": 200, "spares": 0, **settings}
    before = descendants()
    watched = Watched()
    async with open_host({"host": {"presentation": "both", "code": code}}, plugins=[watched]) as opened:
        found = await all_kinds(opened.ctx, rows)
        await opened.ctx.code_runtime.settle()
    for row, (kinds, _) in rows.items():
        assert set(found[row].values()) <= kinds, (row, found[row])
    assert (descendants() - before, os.listdir(tmp_path)) == (set(), [])
    watched.check()


async def all_kinds(ctx: Any, rows: Rows) -> Mapping[str, Mapping[str, str]]:
    """How each program ends; a few run at once."""
    found: dict[str, dict[str, str]] = {row: {} for row in rows}
    few = trio.CapacityLimiter(4)

    async def one(row: str, call_id: str, program: str) -> None:
        async with few:
            arguments = {"code": program, "description": row}
            call = ToolExecutionInput(call_id, "run_code", arguments, AbortController().signal)
            with trio.fail_after(60):
                found[row][program] = kind_of(await ctx.tools.execute(call))

    async with trio.open_nursery() as nursery:
        for place, (row, (_, programs)) in enumerate(rows.items()):
            for number, program in enumerate(programs):
                nursery.start_soon(one, row, f"{place}.{number}", program)
    return found


def kind_of(result: Any) -> str:
    if not result.is_error:
        return "ended"
    assert result.error.info.code == "CODE_RUN_FAILED", result
    found = re.match(r"the program failed \((.*?)\)", result.error.message)
    assert found is not None, result.error.message
    return found[1]


@define
class Watched:
    """A plugin with tools, and a memory of what policy has seen. It denies ``secret``; ``never`` is called too late."""

    judged: list[str] = field(factory=list)
    ran: list[str] = field(factory=list)
    ended: list[str] = field(factory=list)
    mistakes: int = 0
    name: str = "watched"
    inject: tuple[str, ...] = ("tools",)

    def apply(self, ctx: Any) -> None:
        """Register it all."""
        common: dict[str, Any] = {"description": "", "parameters": {}, "output": {"type": "json"}}
        bodies = {"echo": self._echo, "forever": self._forever, "secret": self._never, "never": self._never}
        for name, body in bodies.items():
            ctx.tools.register(define_tool(name=name, execute=body, **common))
        ctx.on("tools/pre-execute", self._judge)
        ctx.on("tools/result", lambda exec, result: self.ended.append(exec.call_id))

    def _judge(self, exec: Any, next: Any) -> Any:
        self.judged.append(exec.call_id)
        return Deny("it is a secret") if exec.name == "secret" else next()

    async def _echo(self, args: Any, exec: Any) -> Any:
        self.ran.append(exec.call_id)
        return args

    async def _forever(self, args: Any, exec: Any) -> Any:
        self.ran.append(exec.call_id)
        await trio.sleep_forever()

    async def _never(self, args: Any, exec: Any) -> Any:
        self.mistakes += 1

    def check(self) -> None:
        """Nothing ran that was not judged, each call once, and all have ended."""
        assert self.mistakes == 0
        assert len(set(self.ran)) == len(self.ran)
        assert set(self.ran) <= set(self.judged)
        assert set(self.judged) <= set(self.ended)
        assert len(set(self.ended)) == len(self.ended)


def descendants() -> set[int]:
    """The processes below this one, zombies included."""
    found: set[int] = set()
    ring = {os.getpid()}
    while ring:
        files = (path for pid in ring for path in Path(f"/proc/{pid}/task").glob("*/children"))
        ring = {int(child) for path in files for child in read(path).split()} - found
        found |= ring
    return found


def read(path: Path) -> str:
    """A file of a process, which may be gone."""
    try:
        return path.read_text()
    except OSError:
        return ""
