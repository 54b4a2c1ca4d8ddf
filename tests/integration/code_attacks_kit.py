"""What a hostile program can try: each attempt as docs/code-mode.md words it, how it may end, and programs."""

from __future__ import annotations

import os
from typing import Final

SEND: Final = """
import json, os, struct, time
def frame(body):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return struct.pack(">I", len(body)) + body
def send(*bodies):
    data = b"".join(map(frame, bodies))
    while data:
        try: data = data[os.write(3, data):]
        except BlockingIOError: time.sleep(0.001)
"""
STAY: Final = "\nimport time\ntime.sleep(60)"
SPIN: Final = "\nwhile True: pass"

#: An attempt as the page words it, the kinds of failure that it may end as (or `ended`), and programs.
Rows = dict[str, tuple[set[str], list[str]]]
PATIENT: Final[Rows] = {
    "a syntax error, a NUL, text that nests too deep for Python's parser": (
        {"exception", "memory"},
        ["x = = 1", "\x00", "(" * 20_000],
    ),
    "large or ever more objects, strings, tasks": (
        {"memory", "crashed"},
        [
            "x = bytearray(10**10)",
            "x = []\nwhile True: x.append({})",
            "x = 'x'\nwhile True: x += x",
            "import asyncio\nasync def f(): await asyncio.gather(*(f() for _ in range(50)))\nawait f()",
        ],
    ),
    "recursion": (
        {"exception", "memory", "crashed"},
        ["def f(): f()\nf()", "import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()"],
    ),
    "a flood of output, by `print`, by descriptor, from threads": (
        {"output-limit"},
        [
            "while True: print('x' * 1000)",
            "import os\nwhile True: os.write(2, b'y' * 70000)",
            "import threading\ndef f():\n    while True: print('z' * 1000)\nthreading.Thread(target=f).start()" + SPIN,
        ],
    ),
    "`os._exit`, `abort`, a signal to itself, a null pointer": (
        {"crashed"},
        [
            "import os\nos._exit(0)",
            "import os\nos.abort()",
            "import os\nos.kill(os.getpid(), 9)",
            "import asyncio, os\nt = asyncio.create_task(tools.forever({}))\nawait asyncio.sleep(0)\nos._exit(0)",
            "import ctypes\nctypes.string_at(0)",
        ],
    ),
    "rubbish, forged, huge, deep or costly frames; forged or used ids; more calls than it may make, unasked": (
        {"crashed"},
        [
            f"{SEND}\nos.write(3, b'rubbish, rubbish and more rubbish'){STAY}",
            f"{SEND}\nos.write(3, b'\\xff\\xff\\xff\\xff'){STAY}",
            f"{SEND}\nsend(b'[' * 100_000){STAY}",
            f"{SEND}\nsend(b'[\"call\",1,\"echo\",[' + b'[],' * 300_000 + b'1]]'){STAY}",
            f"{SEND}\nsend(['call', 7, 'secret', {{}}]){STAY}",
            f"{SEND}\nawait tools.echo({{}})\nsend(['call', 1, 'secret', {{}}]){STAY}",
            f"{SEND}\nsend(*(['call', n, 'secret', {{}}] for n in range(1, 300))){STAY}",
            f"{SEND}\nsend(['call', 1, 'secret', {{}}, 'approved']){STAY}",
            f"{SEND}\nsend(['value', 1, 'forged']){STAY}",
        ],
    ),
    "frames after its own end, tasks and threads that call then": (
        {"ended"},
        [
            f"{SEND}\nsend(['return', 1], ['call', 1, 'never', {{}}]){STAY}",
            f"{SEND}\nsend(['call', 1, 'never', {{}}], ['return', 1]){STAY}",
            "import asyncio\nasync def late():\n    try: await asyncio.sleep(60)\n    finally: await tools.never({})\n"
            "t = asyncio.create_task(late())\nawait asyncio.sleep(0)",
            f"{SEND}\nimport threading\ndef late():\n    for n in range(1, 1000): send(['call', n, 'never', {{}}])\n"
            f"send(['return', 1])\nthreading.Thread(target=late).start(){STAY}",
        ],
    ),
    "calls from threads or other event loops": (
        {"exception"},
        [
            "import asyncio, threading\nr = []\ndef call():\n    try: asyncio.run(tools.secret({}))\n"
            "    except BaseException as e: r.append(e)\n"
            "t = threading.Thread(target=call)\nt.start()\nt.join()\nraise r[0]",
            "import threading\nr = []\ndef call():\n    try: tools.secret({}).send(None)\n"
            "    except BaseException as e: r.append(e)\n"
            "t = threading.Thread(target=call)\nt.start()\nt.join()\nraise r[0]",
        ],
    ),
    "10,000 calls": (
        {"exception"},
        [
            "for _ in range(10_000): await tools.echo({})",
            "import asyncio\nawait asyncio.gather(*(tools.echo({}) for _ in range(10_000)))",
        ],
    ),
    "arguments or results that are no JSON, hold themselves, lone surrogates, huge numbers, or nest too deep": (
        {"exception"},
        [
            f"{make}\n{use}"
            for make in (
                "x = {1}",
                "x = []\nx.append(x)",
                "x = '\\ud800'",
                "x = {'\\udfff': 1}",
                "x = 10**5000",
                "x = float('nan')",
                "x = []\nfor _ in range(100_000): x = [x]",
            )
            for use in ("await tools.secret({'x': x})", "return x")
        ],
    ),
    "forking, `exec`, `subprocess`, `multiprocessing`": (
        {"exception"},
        [
            "import os\nos.fork()",
            "import os\nos.execv('/bin/sh', ['sh'])",
            "import subprocess\nsubprocess.run(['true'])",
            "import multiprocessing\nmultiprocessing.get_context('fork').Process(target=print).start()",
        ],
    ),
    "reading the host's environment, memory, files, descriptors": (
        {"exception"},
        [f"open('/proc/{os.getpid()}/{name}', 'rb').read(10)" for name in ("environ", "mem", "maps", "cmdline", "fd/0")]
        + [
            f"import os\nos.listdir('/proc/{os.getpid()}/fd')",
            "open('/etc/passwd').read()",
            f"open({__file__!r}).read()",
        ],
    ),
    "signals to the host, the warden, other programs; `ptrace`; signals by way of descriptors": (
        {"exception"},
        [
            f"import os\nos.kill({os.getpid()}, 9)",
            "import os\nos.kill(os.getppid(), 19)",
            "import fcntl, os\nfcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())",
            "import ctypes, os\nif ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0): raise OSError",
        ],
    ),
    "sockets, shared memory, raising limits, becoming root": (
        {"exception"},
        [
            "import socket\nsocket.create_connection(('127.0.0.1', 9))",
            "import socket\nsocket.socket(socket.AF_UNIX)",
            "import os\nos.memfd_create('x')",
            "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
            "import os\nos.setuid(0)",
        ],
    ),
    "writing files, anywhere; leaving directories, links, pipes": (
        {"exception"},
        [
            f"import os, tempfile\n{attempt}"
            for attempt in (
                "open('left', 'w')",
                "open('/tmp/dsh-left', 'w')",
                "tempfile.mkdtemp()",
                "os.mkdir('left')",
                "os.symlink('/', 'left')",
                "os.mkfifo('left')",
                "open('/dev/shm/dsh-left', 'w')",
            )
        ],
    ),
    "descriptors that it sends through the channel": (
        {"ended"},
        [
            f"{SEND}\nimport array, socket\nends = array.array('i', [0, 1])\n"
            "channel = socket.socket(fileno=os.dup(3))\n"
            f"channel.sendmsg([frame(['return', 1])], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)]){STAY}"
        ],
    ),
    "taking the interpreter apart, and `tools` with it": (
        {"exception", "crashed", "ended"},
        [
            "import sys\nsys.modules.clear()\n1 / 0",
            "import builtins\nbuiltins.__dict__.clear()\n1 / 0",
            "import gc\nfor o in gc.get_objects():\n    if type(o).__name__ == 'Channel': o.send(b'{}')\n"
            "await tools.echo({})",
            "import json\njson.loads = lambda text: ['value', 1, 'forged']\nawait tools.secret({})",
            "import os\nos.closerange(0, 100)",
        ],
    ),
}
HASTY: Final[Rows] = {
    "an endless loop, a sleep, a wait that never ends, a `__str__` that never returns": (
        {"timeout"},
        [
            SPIN,
            STAY,
            "await tools.forever({})",
            "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
        ],
    ),
    "ignoring signals, ignoring the limit on processor time, swallowing cancellation, stopping itself": (
        {"timeout"},
        [
            "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
            "    except Exception: pass" + SPIN,
            "import asyncio\nwhile True:\n    try: await tools.forever({})\n    except BaseException: pass",
            "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        ],
    ),
    "closing the channel; half a frame": (
        {"crashed", "timeout"},
        [
            "import os\nos.close(3)" + STAY,
            "import os\nos.write(3, b'\\0\\0\\1\\0[\"call\",1')\nos._exit(0)",
            "import os\nos.write(3, b'\\0\\0\\1\\0[\"call\",1')" + STAY,
        ],
    ),
    "answers that it never reads": (
        {"timeout"},
        [f"{SEND}\nfor n in range(1, 201): send(['call', n, 'echo', {{'x': 'x' * 100_000}}]){STAY}"],
    ),
}
FORKING: Final[Rows] = {
    "forking where `processes` are allowed, in sessions of their own, as orphans, zombies or chains": (
        {"ended"},
        [
            "import os, time\nfor _ in range(8):\n    if not os.fork():\n        os.setsid()\n"
            "        if not os.fork(): time.sleep(600)\n        os._exit(0)",
            "import os\nfor _ in range(5):\n    if not os.fork(): os._exit(0)",
            "import os, signal\nif not os.fork():\n    for n in range(1, 32):\n"
            "        try: signal.signal(n, signal.SIG_IGN)\n        except OSError: pass\n    while True: pass",
        ],
    )
}
WRITING: Final[Rows] = {
    "files where `file_bytes` are allowed, deep trees, links to elsewhere": (
        {"ended"},
        [
            "import os\nopen('file', 'w').write('x')\nos.symlink('/etc', 'link')\nos.mkfifo('pipe')",
            "import os\nfor _ in range(300):\n    os.mkdir('deep')\n    os.chdir('deep')\nopen('bottom', 'w').close()",
        ],
    )
}
