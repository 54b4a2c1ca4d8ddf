"""``dsh-run doctor`` loads, unloads, loads and unloads each plugin, and names whatever that leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsh_runtime.loader import leftovers
from dsh_runtime.loader.watchdog import strays

Run = Callable[..., Any]
Write = Callable[[str, str], Path]
Examine = Callable[..., tuple[list[dict[str, Any]], dict[str, Any]]]


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to end soon ends sooner here."""
    monkeypatch.setattr(leftovers, "GRACE", 0.3)
    monkeypatch.setattr(strays, "GRACE", 0.3)


@pytest.fixture
def examine(run: Run, write: Write) -> Examine:
    """What the doctor finds about plugins in files, and which of them unload."""

    def findings(**plugins: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        for name, source in plugins.items():
            write(f"{name}.py", source)
        write("dsh.toml", "".join(f'[[plugin]]\nid = "{name}"\nuse = "./{name}.py"\n' for name in plugins))
        document = json.loads(run("doctor", "-o", "json").out)
        return document["findings"], {plugin["id"]: plugin["unloads"] for plugin in document["plugins"]}

    return findings


THREAD = """
import threading

over = threading.Event()


def work():
    over.wait(8)


def apply(ctx):
    thread = threading.Thread(target=work, name="worker", daemon=True)
    thread.start()
    {undo}
"""


def test_a_thread_that_outlives_its_plugin_is_named_with_its_place(examine: Examine) -> None:
    """Once, however many lives left one."""
    (found,), unloads = examine(leaky=THREAD.format(undo=""))
    assert (found["kind"], found["severity"], found["plugin"]) == ("unload", "warning", "leaky")
    assert "leaves the thread 'worker'" in found["message"]
    assert (Path(found["place"]["file"]).name, found["place"]["line"]) == ("leaky.py", 7)
    assert unloads == {"leaky": False}


def test_a_thread_that_its_undo_ends_is_none(examine: Examine) -> None:
    """Also if it takes a moment."""
    undo = "ctx.effect(lambda: lambda: (over.set(), threading.Timer(0.1, over.clear).start()))"
    assert examine(clean=THREAD.format(undo=undo)) == ([], {"clean": True})


def test_a_thread_begun_by_an_import_is_told_by_its_code(examine: Examine) -> None:
    """It was there before the first life and is there after the last."""
    source = THREAD.format(undo="").replace("def apply(ctx):", "def start():") + "\nstart()\ndef apply(ctx): pass\n"
    (found,), _ = examine(early=source)
    assert (found["plugin"], found["place"]["line"]) == ("early", 7)


def test_workers_of_the_host_are_nobodys(examine: Examine) -> None:
    """A plugin that has used one of trio's threads leaves none of its own."""
    source = "import time, trio\nasync def apply(ctx): await trio.to_thread.run_sync(time.sleep, 0)\n"
    assert examine(clean=source) == ([], {"clean": True})


def test_a_job_that_a_plugin_abandons_in_a_worker_is_its_own(examine: Examine) -> None:
    """The thread is trio's, the work is the plugin's."""
    source = """
import time
import trio


def work():
    for _ in range(200):
        time.sleep(0.1)


async def apply(ctx):
    with trio.move_on_after(0.05):
        await trio.to_thread.run_sync(work, abandon_on_cancel=True)
"""
    (found,), _ = examine(leaky=source)
    assert "leaves the thread" in found["message"]
    assert found["place"]["line"] == 6


def test_a_task_outside_its_nursery_is_named(examine: Examine) -> None:
    """One that ctx.start_soon knows nothing of."""
    source = """
import trio


async def forever():
    await trio.sleep_forever()


def apply(ctx):
    trio.lowlevel.spawn_system_task(forever)
"""
    (found,), _ = examine(leaky=source)
    assert "leaves the task 'dsh_file_plugins.leaky.forever'" in found["message"]
    assert found["place"]["line"] == 5
    assert "ctx.start_soon" in found["remedy"]


def test_a_task_of_the_plugins_own_ends_with_it(examine: Examine) -> None:
    """As it should."""
    source = "import trio\ndef apply(ctx): ctx.start_soon(trio.sleep_forever)\n"
    assert examine(clean=source) == ([], {"clean": True})


def test_an_undo_that_fails_is_named_with_its_line(examine: Examine) -> None:
    """The others are done all the same; several are told one by one."""
    source = """
def one():
    raise OSError("first")


def two():
    raise OSError("second")


def apply(ctx):
    ctx.effect(lambda: one)
    ctx.effect(lambda: two)
"""
    found, unloads = examine(torn=source)
    assert [(one["plugin"], one["place"]["line"]) for one in found] == [("torn", 7), ("torn", 3)]
    assert unloads == {"torn": False}


def test_a_plugin_that_lives_only_once_cannot_be_reloaded(examine: Examine) -> None:
    """What keeps it from a second life is told."""
    source = "done = []\ndef apply(ctx):\n    if done: raise RuntimeError('again')\n    done.append(1)\n"
    found, _ = examine(once=source)
    assert "cannot be applied a second time" in found[0]["message"]
    assert "RuntimeError: again" in found[0]["message"]


def test_a_plugin_that_asks_for_a_restart_needs_no_second_life(examine: Examine) -> None:
    """It has said so itself."""
    source = "done = []\nreload_policy = 'restart'\ndef apply(ctx):\n    if done: raise RuntimeError('again')\n"
    assert examine(once=source + "    done.append(1)\n") == ([], {"once": True})


def test_what_a_consumer_leaves_is_not_put_on_its_provider(examine: Examine) -> None:
    """Consumers go before the provider that they use, wherever they stand in the config."""
    provider = "provides = ['clock']\ndef apply(ctx): ctx.provide('clock', 1)\n"
    consumer = THREAD.format(undo="").replace("over =", "inject = ['clock']\nover =")
    found, unloads = examine(consumer=consumer, provider=provider)
    assert [one["plugin"] for one in found] == ["consumer"]
    assert unloads == {"consumer": False, "provider": True}


def test_a_plugin_that_is_not_active_is_not_unloaded(examine: Examine) -> None:
    """Nothing is known of it."""
    _, unloads = examine(bad="def apply(ctx): 1 / 0\n")
    assert unloads == {"bad": None}


STUBBORN = """
import trio


async def forever():
    while True:
        try:
            await trio.sleep_forever()
        except BaseException:
            pass


def apply(ctx):
    ctx.start_soon(forever)
"""


def test_a_host_that_does_not_close_does_not_hold_the_report(tmp_path: Path) -> None:
    """A process of its own: it has to leave a task behind that nobody can end."""
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    row = '[host]\nteardown_timeout = 0.1\n[[plugin]]\nid = "stubborn"\nuse = "./stubborn.py"\n'
    (tmp_path / "dsh.toml").write_text(row)
    ended = subprocess.run(
        [sys.executable, "-m", "dsh_runtime", "doctor"], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert ended.returncode == 1
    assert "the host does not close: the task 'stubborn: forever'" in ended.stdout
    assert "stubborn.py:5" in ended.stdout
