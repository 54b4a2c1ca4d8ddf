"""How programs fail by themselves: each way gives the kind of failure that docs/code-mode.md says."""

from __future__ import annotations

from runtime_kit import all_of, kind, kinds, run, run_one, runtime

NO_PROGRAM = [
    "x = = 1",
    "return (",
    "'unfinished",
    "\x00",
    "yield 1",
    "from os import *",
    "nonlocal x",
    "break",
    "return '\\N{no such}'",
    "class C:\n    return 1",
]


async def test_text_that_is_no_program_is_an_exception() -> None:
    assert await kinds(NO_PROGRAM) == all_of(NO_PROGRAM, "exception")


async def test_text_that_nests_too_deep_for_python_is_an_exception_or_runs_out_of_memory() -> None:
    assert set((await kinds(["(" * 20_000, "-" * 100_000 + "1", "[" * 150 + "]" * 150])).values()) <= {
        "exception",
        "memory",
        "ended",
    }


async def test_a_program_that_is_too_long_is_an_exception() -> None:
    assert kind(await run_one("#" * 5_000, frame_bytes=8_192)) == "exception"


CRASHES = [
    "import os\nos._exit(0)",
    "import os\nos._exit(3)",
    "import os\nos._exit(137)",
    "import os\nos.abort()",
    "import os\nos.kill(os.getpid(), 9)",
    "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "import os\nos.killpg(0, 9)",
    "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(60)",
    "import asyncio, os\nt = asyncio.create_task(tools.forever({}))\nawait asyncio.sleep(0)\nos.abort()",
    "import ctypes\nctypes.string_at(0)",
    "import faulthandler\nfaulthandler._sigsegv()",
    "import os, sys\nsys.setrecursionlimit(10**9)\nx = []\nfor _ in range(10**6): x = [x]\n"
    "try: repr(x)\nfinally: os._exit(1)",
]


async def test_a_process_that_ends_itself_has_crashed() -> None:
    assert await kinds(CRASHES) == all_of(CRASHES, "crashed")


async def test_what_a_process_printed_before_it_crashed_is_kept() -> None:
    assert (await run_one("print('so far')\nimport os\nos._exit(0)")).logs == "so far\n"


async def test_the_message_says_how_a_process_ended() -> None:
    async with runtime() as service:
        messages = [
            (await run(service, f"import os\n{code}")).failure.message  # type: ignore[union-attr]
            for code in ("os._exit(3)", "os.abort()", "os.close(3)\nimport time\ntime.sleep(9)")
        ]
    assert messages == [
        "the program ended its process with exit code 3",
        "the program's process was ended by SIGABRT",
        "the program closed its channel to the host",
    ]


RAISING = [
    "1 / 0",
    "def f(): f()\nf()",
    "raise KeyboardInterrupt",
    "raise SystemExit(0)",
    "raise GeneratorExit",
    "raise StopIteration",
    "raise StopAsyncIteration",
    "import asyncio\nraise asyncio.CancelledError",
    "import asyncio\nasyncio.current_task().cancel()\nawait asyncio.sleep(1)",
    "raise BaseException('b')",
    "raise BaseExceptionGroup('g', [KeyboardInterrupt()])",
    "class E(BaseException):\n    def __str__(self): raise self\nraise E",
    "class E(Exception):\n    def __str__(self): return 5\nraise E",
    "class E(Exception):\n    def __getattribute__(self, name): raise self\nraise E()",
    "class M(type):\n    @property\n    def __name__(cls): 1 / 0\nclass E(Exception, metaclass=M): pass\nraise E",
    "e = ValueError()\ne.__cause__ = e\nraise e",
    "e = f = ValueError()\nfor n in range(10_000):\n    g = ValueError(n); g.__cause__ = e; e = g\nraise e",
    "raise ValueError('x' * 10_000_000)",
    "raise ValueError('\\udc80')",
    "raise ExceptionGroup('g', [ValueError(n) for n in range(10_000)])",
    "import asyncio\nasyncio.get_running_loop().stop()\nawait asyncio.sleep(1)",
    "import sys\nsys.stdout = sys.stderr = None\n1 / 0",
    "import sys\nsys.stdout.close()\nraise ValueError",
    "tools.x = 1",
    "await tools.echo",
    "await tools.echo({}, a=1)",
    "await tools.fail({})",
    "await tools.nothing({})",
    "await tools['\\ud800']({})",
    "await tools['x' * 2_000]({})",
    "await tools[5]({})",
    "import threading, asyncio\nr = []\ndef call():\n    try: asyncio.run(tools.echo({}))\n"
    "    except BaseException as e: r.append(e)\nt = threading.Thread(target=call)\nt.start()\nt.join()\nraise r[0]",
]


async def test_what_a_program_raises_is_an_exception_told_in_bounded_room() -> None:
    async with runtime() as service:
        for code in RAISING:
            outcome = await run(service, f"print('so far')\n{code}")
            failure = outcome.failure
            assert failure is not None, code
            assert (code, failure.kind, outcome.logs[:7]) == (code, "exception", "so far\n")
            assert (len(failure.message) < 3_000, len(failure.traceback) < 20_000) == (True, True), code


async def test_a_program_that_takes_its_interpreter_apart_harms_itself_alone() -> None:
    codes = ["import sys\nsys.modules.clear()\n1 / 0", "import builtins\nbuiltins.__dict__.clear()\n1 / 0"]
    assert set((await kinds(codes)).values()) <= {"exception", "crashed"}
