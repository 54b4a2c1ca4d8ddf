"""The warden of one program: its parent, and the reaper of whatever it starts.

It is a process of its own, since it is the reaper of orphans (``PR_SET_CHILD_SUBREAPER``), and a host must not be.
Whatever the program leaves behind, in whatever session it hides, becomes a child of the warden, which kills its
children until it has none. A host that is root gives each program a user of its own: then all processes of that user
are killed at once, too.

- From the host, on the control socket: its end, at any time, means: bring the program to rest.
- To the host: ``started`` with a descriptor that stands for the process, ``exited`` with its wait status and the
  processor time that it took, at last ``rest``, or ``stuck`` with the number of processes that could not be ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import NoReturn

from . import sandbox
from .files import remove
from .order import Order
from .program import run
from .system import PR_SET_CHILD_SUBREAPER, prctl
from .wire import framed

CHANNEL = 3
#: Seconds after which a process that has been killed counts as one that cannot be.
_PATIENCE = 5.0
_PAUSE = 0.002
_QUICK_ROUNDS = 100


def watch(order: Order, python: str, channel: int, output: int, control: int) -> NoReturn:
    """Start a program's process and stay with it until nothing of it is left."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    host = socket.socket(fileno=control)
    program = _start(order, python, channel, output)
    os.close(channel)
    os.close(output)
    process = os.pidfd_open(program)
    _tell(host, {"started": program}, process)
    _wait_for_end(host, process)
    left = _bring_to_rest(host, program, order["user"])
    folder = remove(order["folder"])
    _tell(host, {"stuck": left} if left else {"rest": folder})
    os._exit(0)


def _start(order: Order, python: str, channel: int, output: int) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _arrange(channel, output)
        if order["bwrap"] is None:
            run(CHANNEL, order, parent)
        command = sandbox.command(order, python)
        os.execv(command[0], command)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(CHANNEL, framed(json.dumps(["unfit", f"{type(error).__name__}: {error}"]).encode()))
    finally:
        os._exit(127)


def _arrange(channel: int, output: int) -> None:
    """Leave the process four descriptors: nothing to read, the output twice, the channel. All others are closed."""
    null = os.open(os.devnull, os.O_RDONLY)
    high = [os.dup(descriptor) for descriptor in (null, output, channel)]
    for number, descriptor in ((0, high[0]), (1, high[1]), (2, high[1]), (CHANNEL, high[2])):
        os.dup2(descriptor, number, inheritable=True)
    os.closerange(CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))


def _wait_for_end(host: socket.socket, process: int) -> None:
    """Until the program has ended, or the host says that it shall."""
    poll = select.poll()
    poll.register(host, select.POLLIN)
    poll.register(process, select.POLLIN)
    poll.poll()


def _bring_to_rest(host: socket.socket, program: int, user: int | None) -> int:
    """Kill what there is until nothing is left; the number of processes that could not be killed."""
    began = time.monotonic()
    rounds = 0
    while _reap(host, program):
        if time.monotonic() - began > _PATIENCE:
            return len(children())
        kill_all(children() or [program])
        if user is not None and len(children()) > 0 and rounds % 50 == 1:
            kill_user(user)
        rounds += 1
        # In quick rounds at first: what forks as fast as it can is to be met between two forks.
        time.sleep(0 if rounds < _QUICK_ROUNDS else _PAUSE)
    return 0


def _reap(host: socket.socket, program: int) -> bool:
    """Collect the children that have ended; whether there are others."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        if pid == program:
            _tell(host, {"exited": status, "cpu": usage.ru_utime + usage.ru_stime})


def children() -> list[int]:
    """The processes whose parent is this one."""
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:  # a kernel that does not tell
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _parent_of(name) == me]


def _parent_of(pid: str) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])
    return 0


def kill_all(pids: list[int]) -> None:
    """Kill children, and the process groups that they are in. Nobody but their parent can free their numbers."""
    for pid in pids:
        with contextlib.suppress(OSError):
            group = os.getpgid(pid)
            if group != os.getpgrp():
                os.killpg(group, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def kill_user(user: int) -> None:
    """Kill every process of a user that no one else has, in one step that no fork can slip through."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    with contextlib.suppress(OSError):
        os.setresuid(user, user, user)
        os.kill(-1, signal.SIGKILL)
    os._exit(0)


def _tell(host: socket.socket, message: dict[str, object], *descriptors: int) -> None:
    """Tell the host something; a host that is gone hears nothing."""
    with contextlib.suppress(OSError):
        socket.send_fds(host, [json.dumps(message).encode()], descriptors)
