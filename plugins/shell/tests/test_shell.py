"""What a command gets, and what comes back."""

from __future__ import annotations

import json
import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import dsh_plugin_shell
import pytest
from dsh_hookspecs import TerminalCall, TerminalResult
from dsh_plugin_shell import Config, ShellError
from shell_kit import Shell, call

from dsh_runtime import AbortController, ToolExecutionInput, open_host


def text(result: Any) -> str:
    (block,) = result.content
    return str(block["text"])


async def test_output_and_exit_code_come_back(shell: Shell) -> None:
    result = await shell.run("echo out; echo err >&2; exit 3")
    assert result.value == {
        "exit_code": 3,
        "signal": None,
        "output": "out\nerr\n",
        "output_bytes": 8,
        "truncated": False,
        "invalid_utf8": False,
        "stopped": None,
        "background_ended": False,
        "duration_ms": result.value["duration_ms"],
    }
    assert text(result) == "out\nerr\n(exit code 3)"
    assert 0 < result.value["duration_ms"] < 20_000


async def test_a_command_without_output_says_so(shell: Shell) -> None:
    assert text(await shell.run("true")) == "(exit code 0; no output)"


async def test_a_signal_is_named(shell: Shell) -> None:
    result = await shell.run("kill -SEGV $$")
    assert (result.value["exit_code"], result.value["signal"]) == (None, "SIGSEGV")
    assert text(result) == "(ended by SIGSEGV; no output)"


async def test_a_real_time_signal_has_a_number(shell: Shell) -> None:
    assert (await shell.run("kill -40 $$")).value["signal"] == "signal 40"


async def test_the_views_are_those_of_a_terminal(shell: Shell) -> None:
    async with shell.host() as host:
        result = await call(host, "echo hi; exit 1")
        tool = host.ctx.tools.get("shell_run")
    arguments = {"command": "echo hi; exit 1"}
    assert tool.present_call(arguments) == TerminalCall(title="echo hi; exit 1", cwd=str(shell.folder))
    assert tool.present_result(arguments, result) == TerminalResult(output="hi\n", exit_code=1)


async def test_a_failed_call_has_no_view_of_its_own(shell: Shell) -> None:
    async with shell.host() as host:
        result = await call(host, " ")
        assert host.ctx.tools.get("shell_run").present_result({"command": " "}, result) is None


async def test_the_tool_runs_alone_and_is_not_retried(shell: Shell) -> None:
    async with shell.host(timeout=7) as host:
        tool = host.ctx.tools.get("shell_run")
        request = ToolExecutionInput("c", "shell_run", {"command": "true"}, AbortController().signal)
        assert host.ctx.tools.execution_mode(request) == "exclusive"
    assert (tool.idempotent, tool.timeout) == (False, 7)


async def test_the_environment_is_made_from_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("KEPT", "kept")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    result = await shell.run("env", inherit=["KEPT", "NOT_THERE"], env={"EXTRA": "a b\nc", "TERM": "ansi"})
    output = result.value["output"]
    names = {line.partition("=")[0] for line in output.splitlines() if "=" in line}
    expected = {"PATH", "HOME", "LANG", "TERM", "KEPT", "EXTRA", "TEST_MARK", "DSH_SHELL_CALL"}
    assert expected <= names <= expected | {"PWD", "SHLVL", "_", "OLDPWD"}
    assert "secret" not in output
    lines = {"LANG=de_DE.UTF-8", "TERM=ansi", "KEPT=kept", "EXTRA=a b"}
    assert lines | {f"HOME={shell.folder}", f"PATH={os.environ['PATH']}"} <= set(output.splitlines())


async def test_no_descriptor_and_no_ignored_signal_is_passed_on(shell: Shell) -> None:
    masks = "grep -E 'Sig(Ign|Blk)' /proc/self/status"
    result = await shell.run(f"ls /proc/self/fd | wc -w; {masks}; readlink /proc/self/fd/0")
    count, *shown, stdin = result.value["output"].splitlines()
    assert int(count) == 4  # the standard three, and the one of the directory that ls reads
    assert [int(line.split()[1], 16) for line in shown] == [0, 0]
    assert stdin == "/dev/null"


async def test_stdin_is_empty(shell: Shell) -> None:
    assert (await shell.run("cat; read x || echo none")).value["output"] == "none\n"


async def test_a_command_runs_in_its_folder_and_in_a_session_of_its_own(shell: Shell) -> None:
    result = await shell.run("pwd; ps -o sid= -p $$; echo $$")
    folder, session, pid = result.value["output"].split()
    assert folder == str(shell.folder)
    assert session == pid


async def test_without_a_shell_the_arguments_are_as_they_are(shell: Shell) -> None:
    async with shell.host(shell=[]) as host:
        result = await call(host, ["printf", "%s|", "a b", "$HOME", "*", "é"])
        tool = host.ctx.tools.get("shell_run")
        missing = await call(host, ["no-such-program-here"])
        empty = await call(host, [])
    assert result.value["output"] == "a b|$HOME|*|é|"
    assert tool.present_call({"argv": ["ls", "a b"]}).title == "ls 'a b'"
    assert missing.error.info.code == "SHELL_NOT_FOUND"
    assert "program 'no-such-program-here' was not found" in missing.error.message
    assert empty.error.info.code == "SHELL_BAD_COMMAND"


async def test_another_shell_can_be_configured(shell: Shell) -> None:
    result = await shell.run("print(1 + 1)", shell=["python3", "-c"])
    assert result.value["output"] == "2\n"
    missing = await shell.run("x", shell=["/no/shell", "-c"])
    assert missing.error.info.code == "SHELL_NOT_FOUND"


@pytest.mark.parametrize("command", ["", "  \n", "echo a\0b"])
async def test_a_command_that_is_none_is_refused(shell: Shell, command: str) -> None:
    assert (await shell.run(command)).error.info.code == "SHELL_BAD_COMMAND"


@pytest.mark.parametrize("size", [500_000, 5_000_000])
async def test_a_command_that_is_too_long_is_refused(shell: Shell, size: int) -> None:
    result = await shell.run(f": {'x' * size}")
    assert result.error.info.code == "SHELL_BAD_COMMAND"
    assert "too long" in result.error.message


async def test_a_folder_that_is_missing_fails_the_plugin(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    async with open_host() as host:
        for folder in (tmp_path / "none", file):
            with pytest.raises(ShellError, match="correct 'folder' in the config"):
                await host.ctx.plugin(dsh_plugin_shell, Config(folder=folder)).wait()


async def test_a_folder_that_goes_away_fails_the_call(shell: Shell) -> None:
    async with shell.host() as host:
        shell.folder.rmdir()
        result = await call(host, "pwd")
        assert result.error.info.code == "SHELL_NO_FOLDER"
        assert str(shell.folder) in result.error.message
        shell.folder.mkdir()
        assert (await call(host, "pwd")).value["exit_code"] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"inherit": ["A=B"]},
        {"env": {"": "x"}},
        {"env": {"A": "\0"}},
        {"shell": ["sh", ""]},
        {"keep_bytes": 0},
        {"max_output_bytes": -1},
        {"timeout": 0},
        {"grace": -1},
        {"grace": float("inf")},
    ],
)
def test_a_config_that_cannot_work_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Config(folder=tmp_path, **wrong)


async def test_it_is_found_by_its_name_and_configured_from_a_file(shell: Shell) -> None:
    (entry,) = entry_points(group="dsh.plugins", name="shell")
    assert entry.load() is dsh_plugin_shell
    row = {"id": "shell", "use": "shell", "config": {"folder": str(shell.folder), "grace": 0.5}}
    async with open_host({"plugin": [row]}) as host:
        assert (await call(host, "echo $HOME")).value["output"] == f"{shell.folder}\n"


async def test_the_tool_goes_with_the_plugin(shell: Shell) -> None:
    async with open_host() as host:
        fiber = host.ctx.plugin(dsh_plugin_shell, Config(folder=shell.folder))
        await fiber.wait()
        (schema,) = host.ctx.tools.schemas()
        json.dumps(schema)
        assert str(shell.folder) in schema["description"]
        await fiber.dispose()
        assert host.ctx.tools.schemas() == []
