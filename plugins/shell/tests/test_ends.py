"""However a command ends, nothing of it is left: every test ends with a look at all processes."""

# ruff: noqa: ASYNC110  # whether processes are there can only be asked, again and again

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dsh_plugin_timeout
import pytest
import trio
from shell_kit import Shell, call

from dsh_runtime import AbortController

IGNORE = "trap '' TERM HUP INT; "
#: Ignores SIGTERM, and says so once it does.
STUBBORN = f"{IGNORE}echo ready; while :; do sleep 0.05; done"


async def started(shell: Shell, number: int = 1) -> None:
    """Wait until the command has that many processes."""
    with trio.fail_after(20):
        while len(shell.processes()) < number:
            await trio.sleep(0.02)


async def aborted(shell: Shell, command: str, *, processes: int = 1, **config: Any) -> tuple[Any, float]:
    """Abort a command once it runs; its result, and the seconds that it took to end."""
    results = []
    controller = AbortController()
    async with shell.host(**config) as host:

        async def run() -> None:
            results.append(await call(host, command, controller.signal))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await started(shell, processes)
            await trio.sleep(0.3)
            began = time.monotonic()
            controller.abort("enough")
        seconds = time.monotonic() - began
        assert shell.processes() == []
    return results[0], seconds


async def test_an_abort_ends_a_running_command_gently(shell: Shell) -> None:
    result, seconds = await aborted(shell, "trap 'echo bye > bye; exit 0' TERM; while :; do sleep 0.05; done", grace=20)
    assert result.error.info.code == "ABORTED"
    assert (shell.folder / "bye").read_text() == "bye\n"
    assert seconds < 15


async def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(shell: Shell) -> None:
    result, seconds = await aborted(shell, STUBBORN, grace=0.5)
    assert result.error.info.code == "ABORTED"
    assert seconds > 0.4


async def test_a_stopped_command_is_ended(shell: Shell) -> None:
    result, _ = await aborted(shell, "kill -STOP $$", grace=20)
    assert result.error.info.code == "ABORTED"


async def test_an_abort_before_the_start_starts_nothing(shell: Shell) -> None:
    controller = AbortController()
    controller.abort("no")
    async with shell.host() as host:
        result = await call(host, "touch started", controller.signal)
    assert result.error.info.code == "ABORTED_BEFORE_DISPATCH"
    assert not (shell.folder / "started").exists()


async def test_a_deadline_ends_a_command(shell: Shell) -> None:
    plugins = ((dsh_plugin_timeout, dsh_plugin_timeout.Config()),)
    async with shell.host(plugins=plugins, timeout=0.6, grace=0.3) as host:
        result = await call(host, f"sh -c '{STUBBORN}' & {STUBBORN}")
        assert shell.processes() == []
    assert result.error.info.code == "TOOL_TIMEOUT"


async def test_a_cancelled_caller_leaves_nothing(shell: Shell) -> None:
    async with shell.host(grace=0.3) as host:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call, host, f"{IGNORE}sleep 100 & sleep 100")
                await started(shell, 2)
                scope.cancel()
        assert scope.cancelled_caught
        assert shell.processes() == []


async def test_a_caller_cancelled_at_any_moment_leaves_nothing(shell: Shell) -> None:
    async with shell.host(grace=0.2) as host:
        for milliseconds in range(0, 240, 15):
            with trio.move_on_after(milliseconds / 1_000):
                await call(host, "sleep 100 & setsid sleep 100")
            assert shell.processes() == []


async def test_an_unloaded_host_takes_its_commands_along(shell: Shell) -> None:
    async with trio.open_nursery() as nursery, shell.host(grace=0.3) as host:
        nursery.start_soon(call, host, "sleep 100")
        await started(shell)
        nursery.cancel_scope.cancel()
    assert shell.processes() == []


BACKGROUND = {
    "in the group": "sleep 100 &",
    "holding the pipe, ignoring SIGTERM": f"({IGNORE}sleep 100; sleep 100) &",
    "in another session": "setsid sleep 100 &",
    "forked twice into another session": "setsid sh -c 'setsid sleep 100 & sleep 0.1; exit' &",
    "ignoring everything, in another session": f'setsid sh -c "{IGNORE}while :; do sleep 1; done" &',
    "without the environment": "setsid env -i sleep 1000.5 &",
    "stopped": "sh -c 'kill -STOP $$' &",
    "as a daemon": "python3 daemon.py",
}
DAEMON = "import os, time\nos.fork() and os._exit(0)\nos.setsid()\nos.fork() and os._exit(0)\ntime.sleep(99)\n"


@pytest.mark.parametrize("command", BACKGROUND.values(), ids=BACKGROUND)
async def test_what_stays_in_the_background_neither_holds_the_call_nor_survives(shell: Shell, command: str) -> None:
    (shell.folder / "daemon.py").write_text(DAEMON)
    with trio.fail_after(20):
        result = await shell.run(f"{command}\nsleep 0.3; echo done", grace=0.4)
    assert result.value["output"] == "done\n"
    assert (result.value["exit_code"], result.value["background_ended"]) == (0, True)
    assert "background processes were ended" in result.content[0]["text"]
    assert not any(b"1000.5" in _command_line(pid) for pid in os.listdir("/proc") if pid.isdigit())


def _command_line(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_a_storm_of_forks_ends(shell: Shell) -> None:
    one = "(setsid sh -c 'trap \"\" TERM; sleep 100; :' &)"
    result = await shell.run(f"for i in $(seq 42); do {one}; done; sleep 0.5; echo done", grace=0.2)
    assert result.value["output"] == "done\n"
    assert result.value["background_ended"]


async def test_processes_that_go_on_forking_end(shell: Shell) -> None:
    """Each forks a successor in a new session and ends, as fast as it can."""
    program = (
        "import os, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0: break\n"
        "end = time.monotonic() + 60\n"
        "while time.monotonic() < end:\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
    )
    (shell.folder / "forks.py").write_text(program)
    with trio.fail_after(30):
        result = await shell.run("python3 forks.py & sleep 0.5; echo done", grace=0.2)
    assert result.value["output"] == "done\n"


async def test_zombies_are_reaped(shell: Shell) -> None:
    """The orphans that end while the command still runs."""
    command = "for i in 1 2 3 4 5 6 7 8; do (sh -c : &); done; sleep 0.5; ps -o stat= --ppid $PPID | grep -c Z"
    assert (await shell.run(command)).value["output"] == "0\n"


async def test_a_flood_of_output_is_bounded_in_memory(shell: Shell) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await shell.run("echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last", keep_bytes=2_000)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 30_000  # KiB
    value = result.value
    assert (value["exit_code"], value["output_bytes"], value["truncated"]) == (0, 100_000_012, True)
    assert len(value["output"]) < 2_100
    assert value["output"] == "first\n\n… 100,000,001 bytes left out …\nlast\n"
    assert "output of 100,000,012 bytes cut" in result.content[0]["text"]


async def test_a_command_that_writes_too_much_is_stopped(shell: Shell) -> None:
    result = await shell.run("yes", max_output_bytes=1_000_000, keep_bytes=100)
    assert result.value["stopped"] == "it wrote more than 1,000,000 bytes"
    assert result.value["signal"] in ("SIGTERM", "SIGKILL")
    assert 1_000_000 < result.value["output_bytes"] < 10_000_000


async def test_bytes_that_are_no_text_are_replaced_and_told(shell: Shell) -> None:
    result = await shell.run(r"printf 'a\377b'")
    assert (result.value["output"], result.value["invalid_utf8"]) == ("a\ufffdb", True)
    assert "no UTF-8" in result.content[0]["text"]


async def test_output_goes_out_as_progress_at_a_bounded_rate(shell: Shell) -> None:
    heard: list[Any] = []
    async with shell.host() as host:
        host.ctx.on("tools/progress", lambda progress: heard.append(progress))
        lines = "for i in $(seq 3000); do echo line $i; done"
        await call(host, f"echo early; sleep 0.6; {lines}; sleep 0.6; yes | head -c 5000000; sleep 0.5")
    assert heard[0].message == "early\n"
    assert (heard[0].done, heard[0].total) == (6, None)
    assert any("line 3000\n" in progress.message for progress in heard)
    assert 3 <= len(heard) <= 20
    assert all(len(progress.message) <= 2_001 for progress in heard)
    assert [progress.done for progress in heard] == sorted(progress.done for progress in heard)


async def test_a_command_that_kills_its_warden_is_ended_all_the_same(shell: Shell) -> None:
    result = await shell.run("setsid sleep 100 & sleep 100 & kill -KILL $PPID; sleep 100")
    assert result.error.info.code == "SHELL_WARDEN_LOST"
    assert shell.processes() == []


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "ALRM"])
async def test_a_command_cannot_end_its_warden_more_gently(shell: Shell, name: str) -> None:
    assert (await shell.run(f"kill -{name} $PPID; sleep 0.1; echo still")).value["output"] == "still\n"


async def test_a_warden_that_is_stopped_is_given_up_on(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsh_plugin_shell._run._MARGIN", 0.5)
    result, _ = await aborted(shell, "kill -STOP $PPID; sleep 100", grace=0.2)
    assert result.error.info.code in ("SHELL_WARDEN_LOST", "ABORTED")
    assert shell.processes() == []


async def test_reports_that_a_command_forges_are_not_believed_blindly(shell: Shell) -> None:
    """As root it can write to the warden's pipes. That may end it, but neither hang nor break the host."""
    with trio.fail_after(30):
        forged = "printf 'failed x y\\nexited -\\nrest\\n\\377\\n'"
        result = await shell.run(f"for fd in /proc/$PPID/fd/*; do ({forged} > $fd) 2>/dev/null; done; exit 4")
    assert result.is_error or result.value["exit_code"] == 4 or result.value["signal"] == "SIGTERM"


async def test_a_host_that_is_killed_takes_its_commands_along(shell: Shell) -> None:
    command = f"setsid sh -c '{STUBBORN}' & {STUBBORN}"
    program = f"""
import trio
from dsh_runtime import AbortController, ToolExecutionInput, open_host

async def main():
    config = {{"folder": {str(shell.folder)!r}, "grace": 0.3, "env": {{"TEST_MARK": {shell.mark!r}}}}}
    async with open_host({{"plugin": [{{"id": "shell", "use": "shell", "config": config}}]}}) as host:
        call = ToolExecutionInput("c", "shell_run", {{"command": {command!r}}}, AbortController().signal)
        await host.ctx.tools.execute(call)

trio.run(main)
"""
    host = await trio.lowlevel.open_process([sys.executable, "-c", program], stdin=subprocess.DEVNULL)
    await started(shell, 2)
    host.send_signal(signal.SIGKILL)
    await host.wait()
    with trio.fail_after(20):
        while shell.processes():
            await trio.sleep(0.05)


async def test_many_commands_leave_nothing(shell: Shell) -> None:
    async with shell.host() as host:
        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(call, host, f"sleep 100 & echo {number}")
        for number in range(5):
            assert (await call(host, f"echo {number}")).value["output"] == f"{number}\n"
