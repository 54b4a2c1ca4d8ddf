"""The installed ``dsh-run`` as a process of its own: pipes, signals, streams and descriptors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

DSH_RUN = os.path.join(sysconfig.get_path("scripts"), "dsh-run")

SLOW = '''
import os
import time

import trio

from dsh_runtime import tool

inject = ["tools"]


def mark(text):
    os.write(2, f"{text}\\n".encode())


@tool
async def nap() -> str:
    """Sleep for long."""
    mark("started")
    try:
        await trio.sleep(60)
    finally:
        mark("at rest")
    return "awake"


@tool
def block() -> str:
    """Hold a thread, and look at no signal."""
    mark("started")
    time.sleep(60)
    return "awake"


def apply(ctx):
    ctx.tools.register(nap)
    ctx.tools.register(block)
    ctx.effect(lambda: lambda: mark("unloaded"))
'''


@pytest.fixture(autouse=True)
def ordinary_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stdout is buffered, as it is for everybody."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a config: the tutorial's plugin and two slow tools."""
    (tmp_path / "slow.py").write_text(SLOW)
    rows = ['id = "greet"\nuse = "greet"', 'id = "slow"\nuse = "./slow.py"']
    (tmp_path / "dsh.toml").write_text("".join(f"[[plugin]]\n{row}\n" for row in rows))
    return tmp_path


@pytest.fixture
def started(folder: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that a test starts; none outlives it."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(started: list[subprocess.Popen[str]], folder: Path, *args: str) -> subprocess.Popen[str]:
    """Start a call, and wait until its body runs."""
    process = subprocess.Popen(
        [DSH_RUN, *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.append(process)
    assert process.stderr is not None
    assert process.stderr.readline() == "started\n"
    return process


def run(folder: Path, *args: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [DSH_RUN, *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,  # type: ignore[call-overload]
    )


def test_a_call_from_a_shell(folder: Path) -> None:
    """The first thing that anybody tries."""
    ended = run(folder, "call", "greet", "name=Ada")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "Hello, Ada!\n", "unloaded\n")


def test_the_module_is_the_same_program(folder: Path) -> None:
    """``python -m dsh_runtime``."""
    command = [sys.executable, "-m", "dsh_runtime", "call", "--help"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.startswith("Usage: dsh-run call ")


def test_arguments_come_through_a_pipe(folder: Path) -> None:
    """As from another program."""
    ended = subprocess.run(
        [DSH_RUN, "call", "greet", "-o", "json"],
        cwd=folder,
        input='{"name": "Zoë"}',
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        timeout=60,
        check=True,
    )
    assert json.loads(ended.stdout)["value"] == "Hello, Zoë!"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_a_signal_brings_the_call_to_rest(
    folder: Path, started: list[subprocess.Popen[str]], number: signal.Signals, code: int
) -> None:
    """The body unwinds, the result is told, the plugins unload, the exit code says why."""
    process = start(started, folder, "call", "nap", "-o", "json")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.splitlines() == ["at rest", "unloaded", f"error: interrupted by {number.name}"]
    assert json.loads(out)["error"]["code"] == "ABORTED"


def test_a_second_signal_leaves_at_once(folder: Path, started: list[subprocess.Popen[str]]) -> None:
    """A body that holds its thread does not hold the person."""
    process = start(started, folder, "call", "block")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode in (130, 143)


def test_an_interrupted_demo_leaves_nothing_behind(folder: Path, started: list[subprocess.Popen[str]]) -> None:
    """Its folder is gone, whenever it is interrupted."""
    place = folder / "temporary"
    place.mkdir()
    process = subprocess.Popen(
        [DSH_RUN, "demo"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.append(process)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "error: interrupted by SIGINT\n"
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("args", [["tools"], ["--help"], ["--version"]], ids=" ".join)
def test_a_reader_that_leaves_makes_no_traceback(folder: Path, args: list[str]) -> None:
    """``dsh-run tools | head -0``."""
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [DSH_RUN, *args], cwd=folder, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writing)
    assert ended.stderr.replace("unloaded\n", "") == ""
    assert ended.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("args", [["tools"], ["--help"]], ids=" ".join)
def test_a_full_disk_is_one_line(folder: Path, args: list[str]) -> None:
    """Exit code 1."""
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [DSH_RUN, *args], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert ended.returncode == 1
    told = "error: no space is left where the output goes; free some, or redirect it\n"
    assert ended.stderr.replace("unloaded\n", "") == told


def test_closed_streams_are_no_trouble(folder: Path) -> None:
    """Daemons are started like that."""
    ended = subprocess.run(
        ["sh", "-c", f'"{DSH_RUN}" call greet name=Ada <&- >&- 2>&-'], cwd=folder, timeout=60, check=False
    )
    assert ended.returncode == 0


def test_starting_imports_no_more_than_it_needs(folder: Path) -> None:
    """Neither trio for the version, nor rich, importlib.metadata or the MCP SDK for a call."""
    script = (
        "import sys; from dsh_runtime.cli.main import main; code = main(sys.argv[1:]); "
        "print([name for name in {!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    heavy = ["attrs", "trio", "rich", "importlib.metadata", "mcp", "cattrs", "fastjsonschema", "asyncio"]

    def imported(*args: str) -> str:
        command = [sys.executable, "-c", script.format(heavy), *args]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
        return ended.stderr.splitlines()[-1]

    assert imported("call", "--help") == "[]"
    assert not {"rich", "importlib.metadata", "mcp", "fastjsonschema", "asyncio"} & set(
        json.loads(imported("call", "greet", "name=Ada").replace("'", '"'))
    )


def test_a_start_that_is_interrupted_unwinds(folder: Path, started: list[subprocess.Popen[str]]) -> None:
    """A plugin whose ``apply`` never ends is cancelled; nothing has been called."""
    (folder / "endless.py").write_text(
        "import os\nimport trio\n\n\nasync def apply(ctx):\n    os.write(2, b'started\\n')\n    await trio.sleep(60)\n"
    )
    with (folder / "dsh.toml").open("a") as config:
        config.write('[[plugin]]\nid = "endless"\nuse = "./endless.py"\n')
    process = start(started, folder, "call", "greet", "name=Ada")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    waited_for = "warning: the start is given up while it waits for plugin 'endless' (loading)\n"
    assert err == f"{waited_for}unloaded\nerror: interrupted by SIGINT\n"


def test_a_person_who_is_asked_holds_no_interrupted_call(folder: Path, started: list[subprocess.Popen[str]]) -> None:
    """The question is withdrawn, and the body never starts."""
    (folder / "asks.py").write_text(
        "import os\nimport trio\nfrom dsh_runtime import Ask\n\n\ndef apply(ctx):\n"
        "    async def person(request):\n        os.write(2, b'started\\n')\n        await trio.sleep(60)\n\n"
        "    ctx.on('tools/pre-execute', lambda exec: Ask('sure?'))\n    ctx.on('approval/request', person)\n"
    )
    with (folder / "dsh.toml").open("a") as config:
        config.write('[[plugin]]\nid = "asks"\nuse = "./asks.py"\n')
    process = start(started, folder, "call", "greet", "name=Ada", "-o", "json")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["error"]["code"] == "ABORTED_BEFORE_DISPATCH"
