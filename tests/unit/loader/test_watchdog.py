"""The watchdog names the plugin, file and line that holds the event loop, and threads that outlive their plugin.

These tests run in real time, since a blocked loop is a matter of it; what they wait for is bounded, and no figure is
asserted.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from dsh_runtime import open_host
from dsh_runtime.loader import leftovers
from dsh_runtime.loader.resolve import import_file
from dsh_runtime.loader.watchdog import strays

Write = Callable[[str, str], Path]

LIMIT = 0.1


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to end soon ends sooner here."""
    monkeypatch.setattr(leftovers, "GRACE", 0.1)
    monkeypatch.setattr(strays, "GRACE", 0.1)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """What the host has warned of so far."""
    with caplog.at_level(logging.WARNING, "dsh.host"):
        yield lambda: [record.getMessage() for record in caplog.records if record.name == "dsh.host"]


def config(*files: Path, limit: Any = LIMIT) -> dict[str, Any]:
    """A host with plugins in files and a watchdog."""
    return {
        "host": {} if limit is None else {"watchdog": limit},
        "plugin": [{"id": file.stem, "use": str(file)} for file in files],
    }


async def until(done: Callable[[], Any], seconds: float = 5) -> None:
    """Wait for something that happens in another thread."""
    with trio.fail_after(seconds):
        while not done():  # noqa: ASYNC110 - a thread says so
            await trio.sleep(0.01)


BLOCKS = """
import time

from dsh_runtime import tool

inject = ["tools"]


def wait_in_vain():
    {body}


async def soon():
    {before}
    wait_in_vain()


def apply(ctx):
    ctx.start_soon(soon)
"""


async def test_a_plugin_that_sleeps_on_the_loop_is_named_with_the_place(
    write: Write, warnings: Callable[[], list[str]]
) -> None:
    """File, line and function; and what to do."""
    file = write("lazy.py", BLOCKS.format(body="time.sleep(0.5)", before="pass"))
    async with open_host(config(file)):
        await until(warnings)
    (told,) = warnings()
    assert told.startswith(f"plugin 'lazy' at {file}:10 (in wait_in_vain) has held the event loop for more than 0.1 s")
    assert "trio.to_thread.run_sync" in told


async def test_a_plugin_that_computes_on_the_loop_is_named(write: Write, warnings: Callable[[], list[str]]) -> None:
    """Busy or asleep makes no difference."""
    body = "end = time.monotonic() + 0.5\n    while time.monotonic() < end: pass"
    file = write("busy.py", BLOCKS.format(body=body, before="pass"))
    async with open_host(config(file)):
        await until(warnings)
    (told,) = warnings()
    assert told.startswith(f"plugin 'busy' at {file}:11 (in wait_in_vain)")


@pytest.mark.parametrize("body", ["sum(range(40_000_000))", "__import__('re').match('(a+)+$', 'a' * 24 + 'b')"])
async def test_a_plugin_that_holds_the_interpreter_is_named(
    write: Write, warnings: Callable[[], list[str]], body: str
) -> None:
    """No thread of Python's could look while it did."""
    source = BLOCKS.format(body=body, before="import trio")
    again = "while True:\n        await trio.sleep(0.02)\n        wait_in_vain()"
    file = write("greedy.py", source.replace("    wait_in_vain()\n\n\ndef apply", f"    {again}\n\n\ndef apply"))
    async with open_host(config(file)):
        await until(warnings, 20)
    assert warnings()[0].startswith(f"plugin 'greedy' at {file}:10 (in wait_in_vain) h")


async def test_of_a_library_that_blocks_the_line_that_called_it_is_named(
    write: Write, warnings: Callable[[], list[str]]
) -> None:
    """The author can do something about that one."""
    write("slow_library.py", "import time\n\n\ndef fetch():\n    time.sleep(0.5)\n")
    body = f"import sys; sys.path.append({str(write('x', '').parent)!r}); import slow_library; slow_library.fetch()"
    file = write("caller.py", BLOCKS.format(body=body, before="pass"))
    async with open_host(config(file)):
        await until(warnings)
    assert warnings()[0].startswith(f"plugin 'caller' at {file}:10 (in wait_in_vain)")
    sys.modules.pop("slow_library", None)
    sys.path.remove(str(file.parent))


async def test_one_place_is_told_once(write: Write, warnings: Callable[[], list[str]]) -> None:
    """However often it blocks in a minute."""
    body = "import trio\n    for _ in range(3):\n        time.sleep(0.3)\n        await trio.sleep(0.01)"
    source = BLOCKS.format(body=body, before="pass").replace("def wait", "async def wait")
    file = write("again.py", source.replace("    wait_in_vain()", "    await wait_in_vain()"))
    async with open_host(config(file)):
        await until(warnings)
        await trio.sleep(0.8)
    assert len([warning for warning in warnings() if "again.py" in warning]) == 1


async def test_a_loop_that_goes_on_is_left_alone(write: Write, warnings: Callable[[], list[str]]) -> None:
    """Waiting, and work in threads, is what it is for."""
    source = "import time, trio\nasync def soon(): await trio.to_thread.run_sync(time.sleep, 0.4)\n"
    file = write("good.py", source + "def apply(ctx): ctx.start_soon(soon)\n")
    async with open_host(config(file)):
        await trio.sleep(0.5)
    assert warnings() == []


STOPPED = """
import logging, trio
from dsh_runtime import open_host

async def work():
    while True:
        await trio.lowlevel.checkpoint()

async def main():
    async with open_host({"host": {"watchdog": 0.1}}) as host:
        host.ctx.start_soon(work)
        print("up", flush=True)
        await trio.sleep(1.5)

logging.basicConfig(level="WARNING")
trio.run(main)
"""


async def test_the_alarm_of_faulthandler_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the stacks of threads that go on, and can crash; and a process has one of it."""

    touched: list[Any] = []
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda *args, **settings: touched.append(args))
    monkeypatch.setattr("faulthandler.cancel_dump_traceback_later", lambda: touched.append(()))
    async with open_host(config()):
        await trio.sleep(3 * LIMIT)
    assert touched == []


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="nothing can be stopped here")
def test_a_process_that_was_stopped_blames_nobody() -> None:
    """It was all of it that stood still."""
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.6)
        os.kill(process.pid, signal.SIGCONT)
        _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (0, "")


@pytest.mark.parametrize(
    ("limit", "asked", "runs"), [(None, False, 0), (1, False, 1), (None, True, 1), (False, True, 0)]
)
async def test_the_bare_api_has_none_unless_it_is_asked_for(limit: Any, asked: bool, runs: int) -> None:
    """By the setting or by the program; ``false`` is the last word. Nothing is left of it."""

    def watchdogs() -> int:
        return sum(thread.name == "dsh watchdog" for thread in threading.enumerate())

    async with open_host(config(limit=limit), watchdog=asked):
        assert watchdogs() == runs
    assert watchdogs() == 0


THREAD = """
import threading

over = threading.Event()


def work():
    over.wait(20)


def begin():
    thread = threading.Thread(target=work, name="worker", daemon=True)
    thread.start()
    return thread
"""
KEEPS = THREAD + "\n\ndef apply(ctx):\n    begin()\n"
ENDS = THREAD + "\n\ndef apply(ctx):\n    begin()\n    return over.set\n"
LATER = THREAD + "\n\nasync def soon():\n    begin()\n\n\ndef apply(ctx):\n    ctx.start_soon(soon)\n"
LEFT = "leaves the thread 'worker' (begun in {file}:7, now at {file}:8) behind"


@pytest.mark.parametrize("source", [KEEPS, LATER])
async def test_a_thread_that_outlives_its_plugin_is_named_at_unload(
    write: Write, warnings: Callable[[], list[str]], source: str
) -> None:
    """Begun in apply, or by a task later: the place tells whose it is."""
    file = write("leaky.py", source)
    async with open_host(config(file)) as host:
        await trio.testing.wait_all_tasks_blocked()
        await host.plugins[0].fiber.dispose()
        await until(warnings)
    (told,) = warnings()
    assert told.startswith("plugin 'leaky' has been unloaded and " + LEFT.format(file=file))
    assert "ctx.effect" in told


async def test_a_thread_of_code_that_is_not_the_plugins_is_known_by_when_it_began(
    write: Write, warnings: Callable[[], list[str]]
) -> None:
    """Its stack does not show the plugin."""
    source = THREAD.replace("target=work", "target=over.wait, args=(20,)") + "\n\ndef apply(ctx): begin()\n"
    async with open_host(config(write("leaky.py", source))) as host:
        await host.plugins[0].fiber.dispose()
        await until(warnings)
    assert "plugin 'leaky' has been unloaded and leaves the thread 'worker' behind" in warnings()[0]


async def test_a_thread_that_its_undo_ends_is_not_told(write: Write, warnings: Callable[[], list[str]]) -> None:
    """Nor those of a neighbour that is still there."""
    async with open_host(config(write("clean.py", ENDS), write("neighbour.py", ENDS))) as host:
        await host.plugins[0].fiber.dispose()
        await trio.sleep(0.4)
        assert warnings() == []
    assert warnings() == []


async def test_a_thread_that_is_left_at_the_end_of_the_host_is_named(
    write: Write, warnings: Callable[[], list[str]]
) -> None:
    """The end of the host unloads, too."""
    file = write("leaky.py", KEEPS)
    async with open_host(config(file)):
        pass
    assert LEFT.format(file=file) in warnings()[0]


async def test_of_two_versions_the_thread_belongs_to_the_one_it_runs_in(
    write: Write, warnings: Callable[[], list[str]]
) -> None:
    """The new version's threads are not put on the old one, and the old one's are told."""
    file = write("twice.py", LATER)
    old = import_file(file, "twice_of_watchdog")
    async with open_host(config()) as host:
        first = host.ctx.plugin(old, id="twice")
        await first.wait()
        await trio.testing.wait_all_tasks_blocked()
        new = import_file(file, "twice_of_watchdog")
        second = host.ctx.plugin(new, id="twice-new")
        await second.wait()
        await trio.testing.wait_all_tasks_blocked()
        new.begin().name = "worker of the new version"
        await first.dispose()
        await until(warnings)
        await trio.sleep(0.3)
        assert len(warnings()) == 1
        assert LEFT.format(file=file) in warnings()[0]
        new.over.set()
    old.over.set()
    sys.modules.pop("twice_of_watchdog", None)
