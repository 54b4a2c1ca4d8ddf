"""The warden: a small program that runs one command and outlives everything that the command starts.

It is a process of its own, since it is the reaper of orphans (``PR_SET_CHILD_SUBREAPER``), and a host must not be: it
would collect children that are no business of its own. Whatever the command leaves behind, however often it forked and
in whatever session it hides, becomes a child of the warden. The warden ends its children, and those that they leave
it, until it has none.

Only its own children are signalled, and the process groups that these are in: nobody but the warden can free their
numbers for others.

- stdin: the order (see ``_order``). Its end, at any time, means: bring the command to rest. So a host that dies takes
  the command with it.
- stdout: what happens, a line each: ``failed folder|exec ERRNO``, ``started PID``, ``exited WAIT-STATUS``, and at last
  ``rest BACKGROUND`` (1 if the command left processes behind) or ``stuck NUMBER``.
- stderr: the output of the command. The warden never writes to it.

It runs under ``python -I -S`` and imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_LENGTH_DIGITS = 8
#: Seconds between two looks at what is left, while processes may still end by themselves and once they are killed.
_GENTLE_PAUSE = 0.02
_HARD_PAUSE = 0.002
#: Seconds after which a process that has been killed counts as one that cannot be.
_PATIENCE = 5.0


def report(status: int, line: str) -> None:
    """Tell the host something; a host that is gone hears nothing."""
    with contextlib.suppress(OSError):
        os.write(status, f"{line}\n".encode())


def read_exactly(descriptor: int, size: int) -> bytes:
    """Read so many bytes, or exit: the host is gone."""
    data = b""
    while len(data) < size:
        chunk = os.read(descriptor, size - len(data))
        if not chunk:
            sys.exit(1)
        data += chunk
    return data


def prctl(option: int, value: int) -> bool:
    """Set something about this process; whether the system could."""
    try:
        return ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0  # type: ignore[no-any-return]
    except (AttributeError, OSError):
        return False


def on_signal(number: int, frame: object) -> None:
    """Wake up. A handler, unlike an ignored signal, is not passed on to the command."""


def catch_signals() -> int:
    """Survive what a command may send; give the descriptor that is readable after a signal."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for name in ("SIGCHLD", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM"):
        signal.signal(signal.Signals[name], on_signal)
    return reading


def start(order: dict[str, object], status: int) -> int:
    """Start the command in a session of its own; give its process id."""
    warden = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    step = "folder"
    try:
        os.setsid()
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == warden:
            os.chdir(os.fsencode(str(order["folder"])))
            step = "exec"
            become(order)
    except OSError as error:
        report(status, f"failed {step} {error.errno}")
    except ValueError:
        report(status, f"failed {step} 22")
    finally:
        os._exit(127)


def become(order: dict[str, object]) -> None:
    """Turn into the command: nothing to read, one pipe to write to, signals as a program expects them."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    argv = [text.encode() for text in order["argv"]]  # type: ignore[attr-defined]
    env = {name.encode(): value.encode() for name, value in order["env"].items()}  # type: ignore[attr-defined]
    os.execvpe(argv[0], argv, env)


def children() -> list[int]:
    """The processes whose parent is this one, as far as the system tells."""
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return [pid for pid in all_processes() if parent_of(pid) == me]


def all_processes() -> list[int]:
    """Every process that the system tells of; none where there is no ``/proc``."""
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []


def parent_of(pid: int) -> int:
    """The parent of a process, 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def send(pid: int, number: int) -> None:
    """Signal a child and the group that it is in."""
    with contextlib.suppress(OSError):
        group = os.getpgid(pid)
        if group != os.getpgrp():
            os.killpg(group, number)
            os.killpg(group, signal.SIGCONT)  # one that is stopped hears nothing else
    with contextlib.suppress(OSError):
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)


class Warden:
    """Watches over one command, from its start until nothing of it is left."""

    def __init__(self, command: int, grace: float, status: int, wakeup: int) -> None:
        self._command = command
        self._grace = grace
        self._status = status
        self._wakeup = wakeup
        self._exited = False
        self._stop_asked = False
        self._ending_since: float | None = None
        self._told: set[int] = set()
        self._background = False

    def watch(self) -> None:
        """Wait for the command's end or the word to stop; then end what there is until nothing is left."""
        while self._reap():
            if self._ending_since is None and (self._exited or self._stop_asked):
                self._ending_since = time.monotonic()
            if self._ending_since is not None and not self._end(time.monotonic() - self._ending_since):
                report(self._status, f"stuck {len(children())}")
                return
            self._wait()
        report(self._status, f"rest {int(self._background)}")

    def _reap(self) -> bool:
        """Collect the children that have ended; whether there are others."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            self._told.discard(pid)
            if pid == self._command:
                self._exited = True
                report(self._status, f"exited {status}")

    def _end(self, seconds: float) -> bool:
        """Tell every child to end, once, or kill it when the grace is over; false if that is of no use."""
        hard = seconds >= self._grace
        for pid in children() or ([] if self._exited else [self._command]):
            self._background |= self._exited
            if hard or pid not in self._told:
                self._told.add(pid)
                send(pid, signal.SIGKILL if hard else signal.SIGTERM)
        return seconds < self._grace + _PATIENCE

    def _wait(self) -> None:
        """Wait for a child to end, for the word to stop, or for the next look."""
        timeout = None
        if self._ending_since is not None:
            hard = time.monotonic() - self._ending_since >= self._grace
            timeout = _HARD_PAUSE if hard else _GENTLE_PAUSE
        readable, _, _ = select.select([self._wakeup] if self._stop_asked else [self._wakeup, 0], [], [], timeout)
        if 0 in readable:
            self._stop_asked = True
        if self._wakeup in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, 4096)


def main() -> None:
    """Take the order, run it, and bring everything to rest."""
    status = os.dup(1)  # not inherited by the command, whose own stdout takes the place of this one
    wakeup = catch_signals()
    prctl(_PR_SET_DUMPABLE, 0)  # so that the command can neither trace this process nor open its pipes
    reaper = prctl(_PR_SET_CHILD_SUBREAPER, 1)
    order = json.loads(read_exactly(0, int(read_exactly(0, _LENGTH_DIGITS), 16)))
    command = start(order, status)
    report(status, f"started {command}")
    Warden(command, float(order["grace"]), status, wakeup).watch()
    if not reaper:
        with contextlib.suppress(OSError):
            os.killpg(command, signal.SIGKILL)


if __name__ == "__main__":
    main()
