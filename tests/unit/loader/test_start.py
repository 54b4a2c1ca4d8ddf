"""A start that takes long says whom it waits for, and ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from dsh_runtime import open_host
from dsh_runtime.loader import start
from dsh_runtime.loader.host import HostError

Write = Callable[[str, str], Path]

FOREVER = "import trio\nasync def apply(ctx):\n    await trio.sleep_forever()\n"
SLOW_CHILD = FOREVER.replace("apply", "child") + "async def apply(ctx):\n    await ctx.plugin(child).wait()\n"
AT_ONCE = 'def apply(ctx):\n    ctx.provide("word", 1)\n'


def config(*uses: str, optional: tuple[str, ...] = (), **host: Any) -> dict[str, Any]:
    """A config of the files ``uses``, in order."""
    rows = [{"id": Path(use).stem, "use": use, "optional": Path(use).stem in optional} for use in uses]
    return {"plugin": rows, "host": host}


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the warning come at once."""
    monkeypatch.setattr(start, "PATIENCE", 0.2)


@pytest.mark.parametrize(("text", "named"), [(FOREVER, ["late"]), (SLOW_CHILD, ["late", "child"])])
async def test_a_plugin_that_never_loads_fails_the_start(
    write: Write, autojump_clock: trio.testing.MockClock, text: str, named: list[str]
) -> None:
    """By name, also where it waits for what it has mounted; what comes behind it is not blamed."""
    files = [str(write("early.py", AT_ONCE)), str(write("late.py", text)), str(write("behind.py", AT_ONCE))]
    with pytest.raises(HostError) as caught:
        async with open_host(config(*files, start_timeout=60)):
            pytest.fail("it has started")
    told = [problem.message for problem in caught.value.problems]
    assert [message.partition(";")[0] for message in told] == [
        f"plugin {name!r} is still loading after 60 s (start_timeout)" for name in named
    ]
    assert trio.current_time() >= 60


async def test_an_optional_plugin_that_never_loads_fails_alone(
    write: Write, autojump_clock: trio.testing.MockClock
) -> None:
    """Those behind it get their turn."""
    files = [str(write("late.py", FOREVER)), str(write("behind.py", AT_ONCE))]
    async with open_host(config(*files, optional=("late",), start_timeout=3)) as host:
        states = {plugin.id: str(plugin.fiber.state) for plugin in host.plugins if plugin.fiber}
        assert states == {"late": "failed", "behind": "active"}
        assert 3 <= trio.current_time() < 4


@pytest.mark.parametrize("off", [0, False])
async def test_the_limit_can_be_switched_off(write: Write, autojump_clock: trio.testing.MockClock, off: object) -> None:
    """Then a start takes as long as it takes."""
    slow = write("slow.py", "import trio\nasync def apply(ctx):\n    await trio.sleep(9999)\n")
    async with open_host(config(str(slow), start_timeout=off)):
        assert trio.current_time() >= 9999


SLEEPERS = {
    "loading": "import trio\nasync def apply(ctx):\n    await trio.sleep(0.6)\n",
    "loading and holds the loop": "import time\ndef apply(ctx):\n    time.sleep(0.6)\n",
    "importing": "import time\ntime.sleep(0.6)\ndef apply(ctx): pass\n",
}


@pytest.mark.parametrize("kind", SLEEPERS)
async def test_one_warning_says_whom_a_start_waits_for(
    write: Write, soon: None, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """Whatever it is that the plugin is busy with."""
    async with open_host(config(str(write("slow.py", SLEEPERS[kind])))):
        pass
    told = [record.getMessage() for record in caplog.records if record.name == "dsh.host"]
    assert told == [f"still waiting for plugin 'slow' ({kind.partition(' ')[0]})"]


async def test_a_start_in_time_says_nothing(write: Write, soon: None, caplog: pytest.LogCaptureFixture) -> None:
    """Nor does the host afterwards."""
    async with open_host(config(str(write("early.py", AT_ONCE)))):
        await trio.sleep(0.3)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_an_interrupted_start_says_whom_it_waited_for(
    write: Write, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """An interrupt of the command line arrives as a cancellation."""
    with trio.move_on_after(5):
        async with open_host(config(str(write("late.py", FOREVER)))):
            pytest.fail("it has started")
    assert "the start is given up while it waits for plugin 'late' (loading)" in caplog.messages
