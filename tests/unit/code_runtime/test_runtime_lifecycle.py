"""The service as a plugin: what it keeps ready, what it survives, and that unloading it leaves nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from runtime_kit import Recorder, descendants, eventually, is_alive, kind, processes_of, run, runtime

from dsh_runtime import open_host
from dsh_runtime.code_mode.runtime import CodeRuntimeConfig, CodeRuntimeError, SandboxError, SubprocessRuntime
from dsh_runtime.code_mode.runtime.users import choose_range

FORKS = """
import os, time
for _ in range(3):
    if not os.fork():
        os.setsid()
        time.sleep(600)
"""


async def test_the_service_can_be_injected_under_its_name() -> None:
    seen: list[Any] = []

    class Consumer:
        name = "consumer"
        inject = ("code_runtime",)

        @staticmethod
        def apply(ctx: Any) -> None:
            seen.append(ctx.code_runtime.language)

    async with open_host(plugins=[SubprocessRuntime(CodeRuntimeConfig(spares=0)), Consumer]):
        assert seen == ["python"]


async def test_starting_the_service_waits_for_no_process() -> None:
    async with runtime(spares=0):
        assert descendants() == set()


async def test_as_many_interpreters_are_ready_as_shall_be_and_each_is_used_once() -> None:
    async with runtime(spares=3) as service:
        await service.settle()
        ready = descendants()
        assert len(ready) == 1 + 2 * 3  # the template; three programs, each with its warden
        pids = []
        for _ in range(5):
            pids.append((await run(service, "import os\nreturn os.getpid()")).result)
            await service.settle()
        assert len(set(map(str, pids))) == 5
        assert pids[0] in ready
        await eventually(lambda: len(descendants()) == len(ready))


async def test_unloading_ends_the_interpreters_that_are_ready() -> None:
    async with open_host() as host:
        fiber = host.ctx.plugin(SubprocessRuntime(CodeRuntimeConfig(spares=2)))
        await fiber.wait()
        service: Any = host.ctx.get("code_runtime")
        await service.settle()
        assert descendants()
        await fiber.dispose()
        assert descendants() == set()


async def test_a_new_config_is_in_force_for_the_next_program() -> None:
    async with open_host() as host:
        fiber = host.ctx.plugin(SubprocessRuntime, CodeRuntimeConfig())
        await fiber.wait()
        await fiber.update(CodeRuntimeConfig(sub_calls=1))
        service: Any = host.ctx.get("code_runtime")
        assert kind(await run(service, "await tools.echo({})\nawait tools.echo({})")) == "exception"


async def test_a_template_that_was_killed_is_replaced() -> None:
    async with runtime(spares=0) as service:
        await run(service, "return 1")
        (template,) = children_of(os.getpid())
        os.kill(template, signal.SIGKILL)
        assert (await run(service, "return 2")).result == 2


async def test_an_interpreter_that_died_in_reserve_is_not_used() -> None:
    async with runtime(spares=1) as service:
        await service.settle()
        for pid in descendants() - set(children_of(os.getpid())):
            if not children_of(pid):
                os.kill(pid, signal.SIGKILL)
        await trio.sleep(0.05)
        assert (await run(service, "return 1")).result == 1


async def test_what_a_killed_warden_watched_over_is_ended() -> None:
    bridge = Recorder()
    async with runtime(spares=0, processes=8) as service, trio.open_nursery() as nursery:

        @nursery.start_soon
        async def kill() -> None:
            await bridge.started.wait()
            (template,) = children_of(os.getpid())
            (warden,) = children_of(template)
            os.kill(warden, signal.SIGKILL)

        assert kind(await run(service, f"{FORKS}\nawait tools.forever({{}})", bridge)) == "crashed"
        await eventually(lambda: len(descendants()) == 1)


HOST = """
import os, sys, trio
sys.path.insert(0, {kit!r})
from runtime_kit import Recorder, run, runtime
class Telling(Recorder):
    async def _echo(self, arguments):
        print(arguments, os.getpid(), flush=True)
        await trio.sleep_forever()
async def main():
    async with runtime(spares=1, processes=8) as service:
        await service.settle()
        await run(service, '''
import os, time
if not os.fork():
    os.setsid()
    time.sleep(600)
await tools.echo(os.getuid())''', Telling())
trio.run(main)
"""


def test_a_host_that_is_killed_takes_its_programs_with_it() -> None:
    script = HOST.format(kit=str(Path(__file__).parent))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        user = int(host.stdout.readline().split()[0])
        below = offspring_of(host.pid)
        host.kill()
    assert len(below) >= 4  # the template, a warden, the program and what it forked

    async def gone() -> None:
        await eventually(lambda: not any(map(is_alive, below)))

    trio.run(gone)
    assert os.geteuid() != 0 or processes_of(user) == []


async def test_a_sandbox_that_is_asked_for_and_absent_refuses_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    bridge = Recorder()
    async with runtime(sandbox="bwrap") as service:
        with pytest.raises(SandboxError, match="bubblewrap is not installed; install") as caught:
            await run(service, "return 1", bridge)
    assert (caught.value.code, bridge.closed, bridge.entered) == ("CODE_SANDBOX_UNAVAILABLE", 1, [])


async def test_an_interpreter_that_cannot_be_confined_refuses_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    async with runtime() as service:
        with pytest.raises(CodeRuntimeError, match=r"programs cannot be run: .*/nowhere") as caught:
            await run(service, "return 1")
    assert caught.value.code == "CODE_RUNTIME_UNAVAILABLE"


def test_a_host_without_landlock_is_hidden_from_its_programs_and_only_while_it_has_any() -> None:
    code = """
import ctypes, os
from dsh_runtime.code_mode.runtime.shield import Shield
shield, dumpable = Shield(), ctypes.CDLL(None).prctl
before = dumpable(3)
shield.lift()
shield.lift()
hidden = dumpable(3)
shield.lower()
print(before, hidden, dumpable(3))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "1 0 1\n"


def test_the_users_of_programs_lie_where_nobody_else_has_any() -> None:
    users = choose_range(None)
    assert (users is None) == (os.geteuid() != 0)
    assert users is None or users[0] > 60_000


@pytest.mark.skipif(os.geteuid() != 0, reason="the host is not root: its programs run as its own user")
def test_a_root_host_with_no_user_to_run_programs_as_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsh_runtime.code_mode.runtime.users._mapped", lambda path: [(0, 1_000)])
    with pytest.raises(CodeRuntimeError, match="set first_user"):
        choose_range(None)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("sandbox", "docker"), ("wall_time", 0), ("memory", 1), ("first_user", 0), ("spares", -1), ("frame_bytes", 10)],
)
def test_a_setting_that_makes_no_sense_is_refused(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=setting):
        CodeRuntimeConfig(**{setting: value})


def works() -> bool:
    """Whether bubblewrap can be used here."""
    return shutil.which("bwrap") is not None and (
        subprocess.run(
            ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--proc", "/proc", "true"],
            capture_output=True,
        ).returncode
        == 0
    )


@pytest.mark.skipif(not works(), reason="bubblewrap is not installed, or may not make namespaces here")
class TestBubblewrap:
    """The same in bubblewrap."""

    async def test_programs_run_and_call_tools(self) -> None:
        async with runtime(sandbox="bwrap") as service:
            outcome = await run(
                service, "import statistics\nreturn [await tools.echo({'a': 1}), statistics.mean([1, 3])]"
            )
        assert outcome.result == [{"a": 1}, 2]

    async def test_there_is_no_network_no_other_process_and_nothing_to_write_to(self) -> None:
        code = """
import os, socket
found = []
for attempt in (
    lambda: socket.socket(),
    lambda: open("x", "w"),
    lambda: open("/tmp/x", "w"),
    lambda: open("/etc/passwd"),
    lambda: os.listdir("/root"),
    lambda: os.setuid(0),
    lambda: os.fork(),
):
    try: found.append(repr(attempt()))
    except OSError: pass
return [found, os.getpid() < 10, 0 in os.getresuid()]
"""
        async with runtime(sandbox="bwrap") as service:
            assert (await run(service, code)).result == [[], True, False]

    async def test_failures_have_the_same_kinds(self) -> None:
        expected = {
            "1 / 0": "exception",
            "import os\nos._exit(3)": "crashed",
            "import os\nos.abort()": "crashed",
            "x = bytearray(10**10)": "memory",
            "while True: print('x' * 1000)": "output-limit",
            "import time\ntime.sleep(60)": "timeout",
        }
        async with runtime(sandbox="bwrap", wall_time=1.0, output_bytes=5_000) as service:
            assert {code: kind(await run(service, code)) for code in expected} == expected

    async def test_files_may_be_written_in_memory_up_to_a_sum(self) -> None:
        code = "open('a', 'w').write('x' * 60_000)\nopen('b', 'w').write('x' * 60_000)"
        async with runtime(sandbox="bwrap", file_bytes=100_000) as service:
            assert kind(await run(service, "open('a', 'w').write('x' * 60_000)")) == "ended"
            assert kind(await run(service, code)) == "exception"

    async def test_what_it_forks_is_ended_with_it(self) -> None:
        async with runtime(sandbox="bwrap", processes=8, spares=0) as service:
            assert (await run(service, f"{FORKS}\nreturn 1")).result == 1
            await eventually(lambda: len(descendants()) == 1)


def children_of(parent: int) -> list[int]:
    """The children of a process."""
    return [
        int(pid) for task in Path(f"/proc/{parent}/task").iterdir() for pid in (task / "children").read_text().split()
    ]


def offspring_of(parent: int) -> list[int]:
    """All processes below a process."""
    found = children_of(parent)
    return found + [pid for child in found for pid in offspring_of(child)]
