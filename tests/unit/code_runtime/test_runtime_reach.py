"""What a program can reach of the host and of other programs: nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio
from runtime_kit import Recorder, descendants, kind, run, run_one, runtime

from dsh_runtime import AbortController


async def test_the_hosts_environment_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSH_TEST_SECRET", "hunter2")
    code = f"""
import os
found = [k for k in os.environ if "SECRET" in k]
for pid in [os.getppid(), {os.getpid()}, {os.getppid()}, 1]:
    for name in ("environ", "mem", "fd", "maps", "cmdline"):
        path = f"/proc/{{pid}}/{{name}}"
        try:
            found.append(os.listdir(path) if name == "fd" else open(path, "rb").read())
        except OSError:
            pass
return repr(found)
"""
    assert (await run_one(code)).result == "[]"


async def test_the_environment_has_nothing_of_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/secret:" + os.environ.get("LD_LIBRARY_PATH", ""))
    code = "import os\nreturn [sorted(os.environ), 'secret' in str(os.environ)]"
    assert (await run_one(code)).result == [["HOME", "LANG", "PATH", "TMPDIR"], False]


async def test_the_hosts_files_cannot_be_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    code = f"""
import os
found = []
for path in ({str(secret)!r}, "/etc/passwd", "/etc/hosts", {__file__!r}, "/proc/self/environ"):
    try: found.append(open(path).read())
    except OSError: pass
for path in ("/", "/etc", "/tmp", "/home", "/proc", {str(tmp_path)!r}):
    try: found.append(os.listdir(path))
    except OSError: pass
return found
"""
    assert (await run_one(code)).result == []


async def test_the_hosts_descriptors_are_not_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)
        code = """
import os, stat
found = []
for fd in range(200):
    try: found.append(stat.S_ISREG(os.fstat(fd).st_mode))
    except OSError: pass
return [any(found), len(found) < 15]
"""
        assert (await run_one(code)).result == [False, True]


async def test_a_program_starts_in_an_empty_directory_and_a_session_of_its_own() -> None:
    code = "import os\nreturn [os.listdir(), os.getsid(0) == os.getpgid(0) == os.getpid()]"
    assert (await run_one(code)).result == [[], True]
    assert (await run_one(code, file_bytes=1_000)).result == [[], True]


NOT_ALLOWED = [
    "os.kill(os.getppid(), 9)",
    "os.kill(os.getppid(), 0)",
    f"os.kill({os.getpid()}, 9)",
    "os.killpg(os.getpgid(os.getppid()), 9)",
    "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
    "ctypes.CDLL(None, use_errno=True).ptrace(16, os.getppid(), 0, 0) and 1 / 0",
    "os.setuid(0)",
    "os.chmod('.', 0o777)",
    "os.chown('.', os.getuid(), os.getgid())",
    "os.utime('.')",
    "os.setxattr('.', 'user.x', b'x')",
    "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (1, 1))",
    "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
    "os.sched_setaffinity(os.getppid(), {0})",
    "os.sched_setaffinity(0, {0})",
    "os.setgroups([0])",
    "os.fork()",
    "os.execv('/bin/sh', ['sh'])",
    "subprocess.run(['true'])",
    "multiprocessing.get_context('fork').Process(target=print).start()",
    "socket.socket()",
    "socket.socket(socket.AF_UNIX)",
    "socket.create_connection(('127.0.0.1', 9))",
    "ctypes.CDLL(None, use_errno=True).shmget(0, 4096, 0o1600) < 0 and 1 / 0",
    "ctypes.CDLL(None, use_errno=True).shmat(0, 0, 0) + 1 or errno(ctypes.get_errno(), EPERM)",
    "ctypes.CDLL(None, use_errno=True).msgctl(0, 2, 0) < 0 and errno(ctypes.get_errno(), EPERM)",
    "ctypes.CDLL(None, use_errno=True).semctl(0, 0, 2) < 0 and errno(ctypes.get_errno(), EPERM)",
    "fcntl.fcntl(1, fcntl.F_SETOWN, os.getppid())",
    "fcntl.fcntl(3, fcntl.F_SETOWN, os.getpid())",
    "fcntl.fcntl(3, 15, struct.pack('ii', 1, os.getppid()))",
    "fcntl.fcntl(3, fcntl.F_SETSIG, signal.SIGKILL)",
    "fcntl.ioctl(3, 0x8901, struct.pack('i', os.getppid()))",
    "fcntl.ioctl(3, 0x8902, struct.pack('i', os.getppid()))",
    "ctypes.CDLL(None, use_errno=True).syncfs(1) < 0 and 1 / 0",
    "os.memfd_create('x')",
    "open('/tmp/dsh-left', 'w')",
    "open('left', 'w')",
    "os.mkdir('left')",
    "os.mkfifo('left')",
    "os.symlink('/', 'left')",
    "os.rename('.', '/tmp/x')",
    "open('/dev/shm/dsh-left', 'w')",
    "open('/proc/self/oom_score_adj', 'w').write('-1000')",
    "resource.setrlimit(resource.RLIMIT_CPU, (999, 999))",
    "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "[os.pipe() for _ in range(200)]",
    "[threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(300)]",
]


async def test_what_is_not_allowed_is_an_exception() -> None:
    start = """
import ctypes, fcntl, multiprocessing, os, resource, signal, socket, struct, subprocess, threading, time
from errno import EPERM
def errno(number, expected):
    if number == expected: raise OSError(number)
"""
    async with runtime() as service:
        for attempt in NOT_ALLOWED:
            outcome = await run(service, start + attempt)
            assert (attempt, kind(outcome)) == (attempt, "exception")
    with pytest.raises(FileNotFoundError):
        os.stat("/tmp/dsh-left")


#: By number, on x86-64: what the whole machine has a fixed number of, or tells of all that is mounted.
NO_CALL = {"io_setup": 206, "statmount": 457, "listmount": 458, "lsm_list_modules": 461, "open_tree_attr": 467}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
async def test_calls_that_reach_beyond_the_process_are_refused_whatever_their_arguments() -> None:
    code = f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
found = {{}}
for name, number in {NO_CALL!r}.items():
    libc.syscall(number, *[ctypes.c_long(1)] * 5)
    found[name] = errno.errorcode.get(ctypes.get_errno())
return found
"""
    assert (await run_one(code)).result == dict.fromkeys(NO_CALL, "EPERM")


async def test_descriptors_that_are_sent_through_the_channel_arrive_nowhere() -> None:
    before = len(os.listdir("/proc/self/fd"))
    during: list[int] = []
    controller = AbortController()

    async def count(arguments: Any) -> None:
        during.append(len(os.listdir("/proc/self/fd")))
        if len(during) == 8:
            controller.abort()

    code = """
import array, json, os, socket, struct
channel = socket.socket(fileno=os.dup(3))
for number in range(1, 9):
    body = json.dumps(["call", number, "count", {}]).encode()
    pairs = socket.socketpair() + socket.socketpair()
    ends = array.array("i", [end.fileno() for end in pairs])
    channel.sendmsg([struct.pack(">I", len(body)) + body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, ends)])
import time
time.sleep(60)
"""
    async with runtime(spares=0) as service:
        assert kind(await run(service, code, Recorder(count=count), controller.signal)) == "aborted"
    assert max(during) < before + 20  # 32 have been sent, and the host holds a few of its own for each program


async def test_a_signal_to_everybody_reaches_nobody() -> None:
    bridge = Recorder()
    async with runtime(spares=3) as service, trio.open_nursery() as nursery:
        nursery.start_soon(run, service, "return await tools.forever({})", bridge)
        await bridge.started.wait()
        await service.settle()
        before = descendants()
        await run(service, "import os\ntry: os.kill(-1, 9)\nexcept OSError: pass")
        await service.settle()
        assert bridge.under_way == 1
        assert len(descendants() & before) >= len(before) - 2  # but for the worker that was used
        bridge.ending.set()


async def test_a_program_never_runs_as_root() -> None:
    code = "import os\nreturn [*os.getresuid(), *os.getresgid(), *os.getgroups()]"
    ids: Any = (await run_one(code)).result
    assert (len(set(ids[:3])), 0 in ids[:3]) == (1, False)
    if os.geteuid() == 0:
        assert (0 in ids, len(ids)) == (False, 6)


async def test_no_two_programs_of_a_root_host_share_a_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("the host is not root: its programs run as its own user")
    async with runtime() as service:
        users = {(await run(service, "import os\nreturn os.getuid()")).result for _ in range(5)}
    assert len(users) == 5
