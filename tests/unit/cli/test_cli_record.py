"""``dsh-run log``, ``explain`` and ``replay``: reading the record, without the plugins that made it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsh_runtime.cli.errors import CliError
from dsh_runtime.cli.record.units import duration, parse_age, parse_since, parse_size, size

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

LOG = '[host.log]\npath = "log.db"\n'
CONFIG = (
    LOG
    + """\
[[plugin]]
id = "greet"
use = "greet"
[[plugin]]
id = "views"
use = "./views.py"
[[plugin]]
id = "gate"
use = "permission-gate"
[plugin.config]
default = "allow"
[[plugin.config.rules]]
action = "deny"
tools = ["greet"]
arguments = { name = ["Mallory"] }
reason = "not her"
[[plugin.config.rules]]
action = "ask"
tools = ["greet"]
arguments = { name = ["Bob"] }
reason = "who is Bob"
"""
)
VIEWS = """
from dsh_hookspecs import TerminalCall, TerminalResult
from dsh_runtime import ToolExecutionInput, define_tool

inject = ["tools"]


def apply(ctx):
    async def outer(args, exec):
        inner = ToolExecutionInput(
            exec.call_id + ":1", "greet", {"name": "Eve"}, exec.signal, exec.agent, exec.token, exec.root_call_id
        )
        return (await ctx.tools.execute(inner)).value

    ctx.tools.register(
        define_tool(
            name="outer",
            description="Greet from inside.",
            parameters={"command": {"type": "string", "required": True}},
            output={"type": "string"},
            execute=outer,
            present_call=lambda args: TerminalCall(title=args["command"], cwd="/srv"),
            present_result=lambda args, result: TerminalResult(output="all is well", exit_code=0),
        )
    )
"""


@pytest.fixture
def host(run: Run, write: Write, capsys: pytest.CaptureFixture[str]) -> Path:
    """A config whose log holds an allowed, a denied, an unanswered and a nested call; its plugins are gone."""
    views = write("views.py", VIEWS)
    file = write("dsh.toml", CONFIG)
    for name in ("Ada", "Mallory", "Bob"):
        run("call", "greet", f"name={name}")
    assert run("call", "outer", "command=ls -l").code == 0
    views.unlink()
    return file


def calls(run: Run, *args: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(run("log", "calls", "-o", "json", *args).out)
    return listed


def call_id(run: Run, *args: str) -> str:
    return str(calls(run, *args)[-1]["call_id"])


def test_sessions_are_listed_the_newest_first(host: Path, run: Run) -> None:
    """Those of front doors; with --all those of processes, too."""
    sessions = json.loads(run("log", "-o", "json").out)
    labels = [(session["label"], session["front_door"], session["calls"]) for session in sessions]
    assert labels == [("call outer", "cli", 2), *[("call greet", "cli", 1)] * 3]
    assert len(json.loads(run("log", "--all", "-o", "json").out)) == 8
    assert run("log", "--limit", "1").out.splitlines()[0].split() == [
        "SESSION", "STARTED", "ENDED", "CALLS", "THROUGH", "LABEL",
    ]  # fmt: skip


def test_calls_are_filtered(host: Path, run: Run) -> None:
    """By session, tool, outcome, code and time."""
    assert [call["name"] for call in calls(run)] == ["greet", "outer", "greet", "greet", "greet"]
    assert [call["code"] for call in calls(run, "--outcome", "failure")] == ["APPROVAL_UNAVAILABLE", "DENIED"]
    [denied] = calls(run, "--code", "DENIED")
    assert calls(run, "--session", denied["session"][:-1]) == [denied]
    assert [call["name"] for call in calls(run, "--tool", "outer")] == ["outer"]
    assert calls(run, "--since", "2999-01-01") == []
    assert len(calls(run, "--since", "1h", "--limit", "2")) == 2


def test_the_story_of_a_call_names_who_decided(host: Path, run: Run) -> None:
    """Stage, answer, plugin, listener, time; a reason is told once."""
    ended = run("explain", call_id(run, "--code", "DENIED"))
    assert ended.code == 0
    lines = [line.split() for line in ended.out.splitlines()]
    [asked] = [line for line in lines if line[0] == "tools/pre-execute"]
    assert asked[1:5] == ["deny", "by", "plugin", "'gate'"]
    assert [line[:5] for line in lines if line[0] == "result"] == [["result", "DENIED", "by", "plugin", "'gate'"]]
    assert ended.out.count("not her") == 1
    assert '{"name": "Mallory"}' in ended.out


def test_the_story_tells_that_a_person_was_asked(host: Path, run: Run) -> None:
    """When, why, and what came of it."""
    document = json.loads(run("explain", call_id(run, "--code", "APPROVAL_UNAVAILABLE"), "-o", "json").out)
    assert [event["event"] for event in document["approvals"]] == ["approval/asked", "approval/decided"]
    assert document["approvals"][1]["outcome"] == "unavailable"
    assert document["decided_by"] == "gate"
    assert [step["stage"] for step in document["steps"]] == ["tools/pre-execute", "approval"]


def test_calls_inside_a_call_are_told_with_it(host: Path, run: Run) -> None:
    """Below its body."""
    ended = run("explain", call_id(run, "--tool", "outer"))
    stages = [line.split()[0] for line in ended.out.splitlines() if line.startswith("  ")]
    assert stages[-8:-6] == ["tools/pre-execute", "body"]
    assert stages[-6:] == ["call", "entry", "tools/pre-execute", "body", "result", "result"]
    nested = json.loads(run("explain", call_id(run, "--tool", "outer"), "-o", "json").out)["nested"]
    assert [call["arguments"] for call in nested] == [{"name": "Eve"}]


@pytest.mark.filterwarnings("error")
def test_a_beginning_of_an_id_will_do(host: Path, run: Run) -> None:
    """If no other call has it."""
    whole = call_id(run, "--code", "DENIED")
    assert json.loads(run("explain", whole[:-2], "-o", "json").out)["call_id"] == whole
    ended = run("explain", "cli-")
    assert (ended.code, ended.out) == (2, "")
    assert "several begin so" in ended.err
    assert "there is none" in run("replay", "nothing-like-it").err


def test_a_replay_shows_the_tools_own_cards(host: Path, run: Run) -> None:
    """From the log alone: the plugin is gone."""
    ended = run("replay", call_id(run, "--tool", "outer"))
    assert ended.code == 0
    assert "ls -l" in ended.out and "/srv" in ended.out and "all is well" in ended.out
    document = json.loads(run("replay", call_id(run, "--tool", "outer"), "-o", "json").out)
    assert document["pending"] == {"state": "pending", "card": "terminal", "title": "ls -l", "cwd": "/srv"}
    assert document["completed"]["output"] == "all is well"


def test_a_replay_of_a_tool_without_views_shows_what_it_was_given_and_said(host: Path, run: Run) -> None:
    """The generic cards; rich draws them, too."""
    ended = run("-o", "rich", "replay", call_id(run, "--tool", "greet"))
    assert "Ada" in ended.out and "Hello, Ada!" in ended.out
    assert "denies" in run("replay", call_id(run, "--code", "DENIED")).out


def test_an_export_is_every_event_as_a_line_of_json(host: Path, run: Run) -> None:
    """Of all sessions, or of one."""
    events = [json.loads(line) for line in run("log", "export").out.splitlines()]
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    session = calls(run, "--code", "DENIED")[0]["session"]
    types = [json.loads(line)["type"] for line in run("log", "export", "--session", session).out.splitlines()]
    assert types == ["session/started", "tool/call", "tool/result"]


def test_pruning_has_to_be_told_what(host: Path, run: Run) -> None:
    """By age, by size, and it says what it did."""
    assert run("log", "prune").code == 2
    assert json.loads(run("log", "prune", "--older-than", "1d", "-o", "json").out)["sessions"] == 0
    assert run("log", "prune", "--max-size", "0").out.startswith("Deleted 8 sessions with ")
    assert calls(run) == []
    assert [session["label"] for session in json.loads(run("log", "-o", "json").out)] == ["log prune"]


@pytest.mark.parametrize("command", [["log"], ["log", "calls"], ["log", "export"], ["explain", "x"], ["replay", "x"]])
def test_no_log_is_one_clear_line(run: Run, write: Write, command: list[str]) -> None:
    """So are a file that is none, and one of a newer version."""
    write("dsh.toml", LOG)
    absent = run(*command)
    write("log.db", "my diary")
    foreign = run(*command)
    Path("log.db").unlink()
    database = sqlite3.connect("log.db")
    database.executescript("CREATE TABLE x (y); PRAGMA application_id = 0x44534C47; PRAGMA user_version = 99;")
    database.close()
    newer = run(*command)
    for ended, word in ((absent, "there is none"), (foreign, "no SQLite database"), (newer, "its version is 99")):
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert word in ended.err


def test_without_a_config_the_users_own_log_is_read(run: Run, write: Write) -> None:
    """And any other by its name."""
    assert "sessions.db" in run("log").err
    assert "other.db" in run("log", "--log", "other.db").err
    assert "no config file found" in run("-c", "nowhere.toml", "log").err


@pytest.mark.parametrize(
    ("name", "code", "verdict", "by"),
    [("Ada", 0, "allow", None), ("Mallory", 1, "refuse", "gate"), ("Bob", 0, "ask", None)],
)
def test_policy_is_asked_beforehand(run: Run, write: Write, name: str, code: int, verdict: str, by: str | None) -> None:
    """Nothing goes on record."""
    write("views.py", VIEWS)
    write("dsh.toml", CONFIG)
    ended = run("explain", "--would", "greet", f"name={name}", "-o", "json")
    document = json.loads(ended.out)
    assert (ended.code, document["verdict"], document["decided_by"]) == (code, verdict, by)
    assert [(step["stage"], step["plugin"]) for step in document["steps"]] == [("tools/pre-execute", "gate")]
    assert not Path("log.db").exists()
    assert run("explain", "--would", "greet", f"name={name}").code == code


def test_arguments_that_do_not_fit_would_be_refused(run: Run, greet: Path) -> None:
    """Behind policy, in front of the body."""
    ended = run("explain", "--would", "greet")
    assert ended.code == 1
    assert "would be refused [INVALID_ARGS] by plugin 'greet'" in ended.out


def test_explain_takes_one_call(run: Run, greet: Path) -> None:
    """Or a tool's name."""
    assert "the id of one call" in run("explain").err
    assert "the id of one call" in run("explain", "a", "b").err
    assert "no plugin offers a tool 'gret'" in run("explain", "--would", "gret").err


def test_ages_times_and_sizes_are_read_and_written() -> None:
    """In the units that people use."""
    assert [parse_age(text, "--x") for text in ("90s", "1.5h", "30d", "2 W")] == [
        90_000, 5_400_000, 2_592_000_000, 1_209_600_000,
    ]  # fmt: skip
    assert [parse_size(text, "--x") for text in ("12", "1kB", "1KiB", "1.5GB")] == [12, 1_000, 1_024, 1_500_000_000]
    assert parse_since("1970-01-01T00:00:01+00:00", 0) == 1_000
    assert parse_since("1m", 100_000) == 40_000
    for parse in (lambda: parse_age("30", "--x"), lambda: parse_size("1 iB", "--x"), lambda: parse_since("yore", 0)):
        with pytest.raises(CliError):
            parse()
    assert [duration(ms) for ms in (None, 0.5, 42.0, 1_234.0, 65_000.0)] == [
        "-", "0.50 ms", "42.0 ms", "1234 ms", "65.0 s",
    ]  # fmt: skip
    assert [size(count) for count in (999, 1_500, 2_000_000, 10**13)] == ["999 B", "1.5 kB", "2.0 MB", "10.0 TB"]


def test_a_check_tells_that_the_log_cannot_be_kept(run: Run, write: Write) -> None:
    """As the call would."""
    write("dsh.toml", LOG)
    Path("log.db").mkdir()
    checked, called = run("check"), run("call", "greet")
    assert (checked.code, called.code) == (2, 2)
    assert "dsh.toml:2: host.log.path: session log" in checked.err
    assert "dsh.toml:2: host.log.path: session log" in called.err
