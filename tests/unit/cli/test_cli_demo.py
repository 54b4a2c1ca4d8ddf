"""``dsh-run demo`` shows what really happens, and leaves nothing behind."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

import dsh_runtime.cli.asking as asking
import dsh_runtime.cli.demo.folder as folder
import dsh_runtime.cli.demo.steps as steps
from dsh_runtime.cli.demo.steps import STEPS, Ending, Step

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo makes its folder."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_the_tour_keeps_its_promises(run: Run, temporary: Path) -> None:
    """Exit code 0, every call told with its stages, the folder gone."""
    ended = run("demo")
    assert (ended.code, ended.err) == (0, "")
    assert "Not as promised" not in ended.out
    assert [step.title for step in STEPS if step.title not in ended.out] == []
    assert list(temporary.iterdir()) == []


def test_the_tour_is_told_line_by_line(run: Run) -> None:
    """What a stage decided stands beside its name."""
    lines = run("demo").out.splitlines()
    start = lines.index("2  A denied call")
    assert lines[start + 1] == '   fs_read(path=".env")'
    assert lines[start + 2].startswith("   pre-execute   deny  The permission gate denies 'fs_read'")
    assert lines[start + 3 : start + 5] == ["   post-execute  accept", "   result        DENIED by plugin 'gate'"]


def test_a_program_gets_the_tour_as_one_document(run: Run) -> None:
    """With the results as ``call`` gives them."""
    document = json.loads(run("demo", "-o", "json").out)
    assert document["ok"] is True
    codes = [(call["result"]["error"] or {}).get("code") for call in document["calls"]]
    assert codes == [None, "DENIED", "APPROVAL_UNAVAILABLE", "APPROVAL_UNAVAILABLE", None, "TOOL_TIMEOUT"]
    assert [call["result"]["is_error"] for call in document["calls"]] == [False, True, True, True, True, True]


def test_a_promise_that_is_broken_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown is what happened, and the exit code says so."""
    broken = Step("Wrong", "greet", {"name": "Ada"}, (Ending((("result", "DENIED"),), "Never shown."),))
    monkeypatch.setattr(steps, "STEPS", (broken,))
    ended = run("demo")
    assert ended.code == 1
    assert "Not as promised, which was: result DENIED" in ended.out
    assert "Never shown." not in ended.out


def test_where_nobody_is_there_the_tour_says_so(run: Run) -> None:
    """It waits for nobody, and ends well."""
    ended = run("demo")
    told = ended.out.partition("A call that a person is asked about")[2].partition("\n\n")[0].splitlines()
    assert ended.code == 0
    assert "   There is no terminal to ask anybody at." in told
    assert "   approval      unavailable" in told
    assert any(line.startswith("   result        APPROVAL_UNAVAILABLE by plugin 'gate'") for line in told)
    assert told[-1].startswith("   Nobody is there, so the call was refused")


def test_silence_at_the_terminal_is_no_yes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tour goes on when the person has let the time pass."""

    async def say_nothing() -> Any:
        await trio.sleep_forever()

    async def ask_somebody_silent(host: Any) -> None:
        host.ctx.on("approval/request", say_nothing)

    monkeypatch.setattr(folder, "PATIENCE", 0.2)
    monkeypatch.setattr(asking, "ask_at_terminal", ask_somebody_silent)
    ended = run("demo")
    assert ended.code == 0
    assert "you have 0.2 seconds." in ended.out
    assert "APPROVAL_EXPIRED" in ended.out
    assert "Nobody answered in time" in ended.out


def test_wheels_that_are_missing_are_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs them."""
    monkeypatch.setattr(folder, "is_installed", lambda name: name != "timeout")
    assert run("demo") == (
        2,
        "",
        "error: the demo uses plugins that are not installed: 'timeout'; run: pip install dsh-plugin-timeout\n",
    )


def test_the_tour_is_drawn_on_a_terminal(run: Run) -> None:
    """With the same words."""
    ended = run("-o", "rich", "demo")
    assert ended.code == 0
    assert "DENIED by plugin 'gate'" in ended.out


def test_the_record_tells_of_a_call_again(run: Run) -> None:
    """From the tour's own log; a program gets it, too."""
    ended = run("demo")
    told = ended.out.partition("What the record says of one of them")[2]
    assert "dsh-run explain cli-" in told
    assert "deny  by plugin 'gate'" in told
    explained = json.loads(run("demo", "-o", "json").out)["explained"]
    assert (explained["name"], explained["code"], explained["decided_by"]) == ("fs_read", "DENIED", "gate")
