"""What a program may take, and what comes of one that takes more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from runtime_kit import Recorder, descendants, eventually, kind, run, run_one, runtime

SPIN = "while True: pass"


ENDLESS = [
    SPIN,
    "import time\ntime.sleep(60)",
    "import asyncio\nawait asyncio.sleep(60)",
    "await tools.forever({})",
    "import asyncio\nwhile True: await asyncio.sleep(0)",
    "import asyncio\nwhile True:\n    try: await asyncio.sleep(60)\n    except BaseException: pass",
    "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except Exception: pass\n"
    + SPIN,
    "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "import asyncio, os, signal\nt = asyncio.create_task(tools.forever({}))\nawait asyncio.sleep(0)\n"
    "os.kill(os.getpid(), signal.SIGSTOP)",
    "import asyncio\nt = asyncio.create_task(tools.forever({}))\n" + SPIN,
    "while True:\n    try: await tools.nothing({})\n    except ToolCallError: pass",
]


async def test_what_does_not_end_is_a_timeout_with_what_was_printed() -> None:
    outcomes: dict[str, tuple[str, str]] = {}
    async with runtime(wall_time=0.5, sub_calls=100) as service, trio.open_nursery() as nursery:

        async def one(code: str) -> None:
            outcome = await run(service, f"print('so far')\n{code}")
            outcomes[code] = (kind(outcome), outcome.logs)

        for code in ENDLESS:
            nursery.start_soon(one, code)
    assert outcomes == dict.fromkeys(ENDLESS, ("timeout", "so far\n"))


@pytest.mark.parametrize("ignored", [False, True])
async def test_too_much_processor_time_is_a_timeout(ignored: bool) -> None:
    start = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n" if ignored else ""
    failure = (await run_one(start + SPIN, cpu_time=1)).failure
    assert failure is not None
    assert (failure.kind, "processor time" in failure.message) == ("timeout", True)


@pytest.mark.parametrize(
    "code",
    [
        "x = bytearray(10**10)",
        "x = []\nwhile True: x.append(bytearray(10**6))",
        "x = 'x'\nwhile True: x += x",
        "x = []\nwhile True: x.append({})",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
        "x = [[]]\nfor _ in range(60): x = [x, x]\nimport json\nreturn json.dumps(x)",
    ],
    ids=["at once", "bit by bit", "a text", "small ones", "frames", "an encoding"],
)
async def test_a_memory_bomb_is_a_failure_for_memory(code: str) -> None:
    outcome = await run_one("print('so far')\n" + code, memory=32 * 1024 * 1024)
    assert (kind(outcome), outcome.logs[:7]) == ("memory", "so far\n")


async def test_tasks_without_end_are_a_failure_for_memory_unless_python_itself_breaks_down() -> None:
    code = "import asyncio\nasync def f():\n    await asyncio.gather(*(f() for _ in range(50)))\nawait f()"
    assert kind(await run_one(code, memory=32 * 1024 * 1024)) in ("memory", "crashed")


async def test_no_more_threads_start_than_are_allowed() -> None:
    code = """
import threading, time
started = 0
try:
    while started < 100:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        started += 1
except RuntimeError:
    pass
return started
"""
    outcome = await run_one(code, threads=5, memory=4 * 1024**3)
    assert isinstance(outcome.result, int)
    # A host that is not root shares the count with its programs: what else has ended since makes room for a few more.
    assert 0 < outcome.result <= (5 if os.geteuid() == 0 else 20)


async def test_memory_that_was_caught_is_the_programs_own_matter() -> None:
    code = "try: bytearray(10**10)\nexcept MemoryError: return 'caught'"
    assert (await run_one(code)).result == "caught"


@pytest.mark.parametrize(
    "code",
    [
        "while True: print('x' * 1000)",
        "import os\nwhile True: os.write(2, b'y' * 70000)",
        "import threading\ndef flood():\n    while True: print('z' * 1000)\nthreading.Thread(target=flood).start()\n"
        + SPIN,
        "print('x' * 20_000)\nreturn 1",
        "import warnings\nwarnings.simplefilter('always')\nwhile True: warnings.warn('w' * 1000)",
    ],
    ids=["print", "write", "thread", "once", "warnings"],
)
async def test_a_flood_of_output_is_stopped_at_the_limit(code: str) -> None:
    outcome = await run_one(code, output_bytes=10_000)
    assert (kind(outcome), len(outcome.logs.encode())) == ("output-limit", 10_000)


async def test_output_up_to_the_limit_is_none_too_much() -> None:
    outcome = await run_one("print('x' * 9_999)", output_bytes=10_000)
    assert (kind(outcome), len(outcome.logs)) == ("ended", 10_000)


async def test_ten_thousand_calls_are_refused_past_the_limit() -> None:
    bridge = Recorder()
    code = """
codes = set()
for _ in range(10_000):
    try:
        await tools.echo({})
    except ToolCallError as error:
        codes.add(error.code)
return list(codes)
"""
    outcome = await run_one(code, bridge, sub_calls=200)
    assert (outcome.result, len(bridge.entered)) == (["TOO_MANY_CALLS"], 200)


async def test_calls_past_the_limit_that_are_not_caught_are_an_exception() -> None:
    bridge = Recorder()
    outcome = await run_one("while True: await tools.echo({})", bridge, sub_calls=5)
    assert (kind(outcome), len(bridge.entered)) == ("exception", 5)


async def test_ten_thousand_calls_at_once_are_taken_in_bit_by_bit() -> None:
    bridge = Recorder()
    code = "import asyncio\nreturn len(await asyncio.gather(*(tools.echo({'n': n}) for n in range(10_000))))"
    outcome = await run_one(code, bridge, sub_calls=10_000)
    assert (outcome.result, len(bridge.entered), bridge.most <= 100) == (10_000, 10_000, True)


async def test_a_task_that_outlives_the_program_calls_nothing() -> None:
    bridge = Recorder()
    code = """
import asyncio, threading, time
async def later():
    try:
        await asyncio.sleep(60)
    finally:
        await tools.echo({"late": True})
def thread():
    while True: time.sleep(0.001)
asyncio.create_task(later())
threading.Thread(target=thread).start()
await asyncio.sleep(0)
return 1
"""
    outcome = await run_one(code, bridge)
    assert (outcome.result, bridge.entered) == (1, [])


BOMB = """
import os
while True:
    try: os.fork()
    except OSError: pass
"""
SESSIONS = """
import os
for _ in range(300):
    try:
        if not os.fork(): os.setsid()
    except OSError: pass
while True: pass
"""
CHAIN = """
import os, signal
for n in range(1, 32):
    try: signal.signal(n, signal.SIG_IGN)
    except OSError: pass
while True:
    try:
        if os.fork(): os._exit(0)
        os.setsid()
    except OSError: pass
"""


@pytest.mark.parametrize(
    ("code", "ending"),
    [(BOMB, "timeout"), (SESSIONS, "timeout"), (CHAIN, "crashed")],
    ids=["bomb", "sessions", "chain"],
)
async def test_forks_where_processes_are_allowed_are_bounded_and_all_ended(code: str, ending: str) -> None:
    assert kind(await run_one(code, processes=40, wall_time=1.0)) == ending


async def test_orphans_and_zombies_do_not_outlive_the_program() -> None:
    code = """
import os, time
for _ in range(10):
    if not os.fork():
        os.setsid()
        if not os.fork():
            time.sleep(600)
        os._exit(0)
for _ in range(5):
    if not os.fork():
        os._exit(0)
return "done"
"""
    async with runtime(processes=40) as service:
        await service.settle()
        before = descendants()
        assert (await run(service, code)).result == "done"
        await service.settle()
        await eventually(lambda: len(descendants()) <= len(before))  # the warden itself is just about to end


async def test_a_grandchild_that_holds_the_channel_cannot_speak_for_the_program() -> None:
    code = """
import os, time
if not os.fork():
    time.sleep(0.2)
    os.write(3, b"\\0\\0\\0\\x12" + b'["call",1,"echo",1]'[:18])
    time.sleep(600)
os._exit(4)
"""
    bridge = Recorder()
    outcome = await run_one(code, bridge, processes=4)
    assert (kind(outcome), bridge.entered) == ("crashed", [])


async def test_no_process_may_have_namespaces_of_its_own() -> None:
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
found = [libc.unshare(0x10000000)]
for flag in (0x10000000, 0x20000000, 0x40000000, 0x00020000):
    found.append(libc.syscall(56 if os.uname().machine == "x86_64" else 220, flag | 17, 0, 0, 0, 0))
return found
"""
    assert (await run_one(code, processes=4)).result == [-1] * 5


async def test_a_program_may_run_others_where_processes_are_allowed() -> None:
    code = "import subprocess\nreturn subprocess.run(['/bin/echo', 'hi'], capture_output=True, text=True).stdout"
    assert (await run_one(code, processes=8)).result == "hi\n"


async def test_files_may_be_written_where_that_is_allowed_and_are_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    code = f"""
import os
open("file", "w").write("x" * 1000)
os.symlink({str(kept)!r}, "link")
top = os.getcwd()
for n in range(1_000):
    os.mkdir("deep")
    os.chdir("deep")
open("bottom", "w").close()
return 1
"""
    assert (await run_one(code, file_bytes=10_000)).result == 1
    assert (kept / "file").read_text() == "kept"


async def test_a_file_that_grows_too_large_is_an_exception() -> None:
    assert kind(await run_one("open('file', 'w').write('x' * 20_000)", file_bytes=10_000)) == "exception"
