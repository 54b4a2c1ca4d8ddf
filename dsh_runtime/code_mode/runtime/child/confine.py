"""Confines the process that is going to run a program, for good, before it gets to see the program.

The order counts, since a step may need what the next one takes away: what the user-to-be may not reach is opened,
limits are set, the user is changed, then Landlock and the seccomp filter close behind.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import sys
from typing import TypedDict

from . import landlock, seccomp
from .order import Order
from .system import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, drop_capabilities, prctl

_PATH = "/usr/local/bin:/usr/bin:/bin"
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
_DATA = ("/usr/share/zoneinfo", "/etc/localtime", "/dev/zero", "/dev/urandom", "/dev/random")
_PROGRAMS = ("/bin", "/usr/bin", "/usr/local/bin", "/usr/share")


class Notes(TypedDict):
    """What confines a process: the user, the version of Landlock (0: none), whether there is a filter."""

    user: int
    landlock: int
    seccomp: bool


class Unfit(Exception):  # noqa: N818 - told to the host as a reason
    """This process cannot be confined, and so must not run a program."""


def confine(order: Order, parent: int) -> Notes:
    """Confine this process, whose parent is ``parent``; raises ``Unfit`` or ``OSError`` if it cannot be."""
    os.chdir(order["folder"])
    library = [path for path in sys.path if os.path.isdir(path)]
    descriptors = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in library]
    level = landlock.version()
    ruleset = landlock.prepare(level, _rules(order, descriptors)) if level else None
    _sacrifice_first()
    _limit(order)
    _become(order["user"])
    _reach(library, descriptors)
    prctl(PR_SET_DUMPABLE, 0)
    _die_with(parent)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if ruleset is not None:
        landlock.restrict(ruleset)
    others = order["user"] is not None or level >= landlock.SIGNAL_VERSION
    filtered = seccomp.restrict(processes=order["processes"] > 0, signals=others)
    _settle(order["folder"])
    return Notes(user=os.geteuid(), landlock=level, seccomp=filtered)


def _rules(order: Order, library: list[int]) -> list[tuple[str | int, int]]:
    """What of the file system may be touched: Python's library, what it needs, and perhaps the working directory."""
    rules: list[tuple[str | int, int]] = [(descriptor, landlock.READ) for descriptor in library]
    rules += [(path, landlock.READ) for path in (*_LIBRARIES, *_DATA)]
    rules += [("/dev/null", landlock.READ | landlock.WRITE_FILE)]
    rules += [(order["folder"], landlock.CHANGE if order["file_bytes"] else landlock.READ)]
    if order["processes"]:
        rules += [(path, landlock.RUN) for path in (*_LIBRARIES, *_PROGRAMS, sys.base_prefix)]
    return rules


def _sacrifice_first() -> None:
    """Where the machine runs out of memory, a program goes before anything else."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _limit(order: Order) -> None:
    """Set every limit, so that nothing can raise it again. Memory counts beyond what the interpreter itself takes."""
    tasks = 1 + order["threads"] + order["processes"]
    if order["user"] is None:
        tasks += tasks_of(os.getuid()) - 1  # this process is among them
    limits = {
        resource.RLIMIT_AS: own_size() + order["memory"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: order["file_bytes"],
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NOFILE: order["open_files"],
        resource.RLIMIT_NPROC: tasks,
        resource.RLIMIT_SIGPENDING: 64,
    }
    for what, value in limits.items():
        _set(what, value, value)
    # One second more until the hard end, for a program that ignores the soft one.
    _set(resource.RLIMIT_CPU, order["cpu_time"], order["cpu_time"] + 1)


def _set(what: int, soft: int, hard: int) -> None:
    _, most = resource.getrlimit(what)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(what, (soft, hard))


def own_size() -> int:
    """The address space that this process takes by itself."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def tasks_of(user: int) -> int:
    """How many processes and threads a user has already: the system's limit counts them all."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError, ValueError, KeyError), open(f"/proc/{name}/status") as file:
                fields = dict(line.split(":", 1) for line in file if line.startswith(("Uid:", "Threads:")))
                count += int(fields["Threads"]) if int(fields["Uid"].split()[0]) == user else 0
    return count


def _become(user: int | None) -> None:
    """Stop being root, and make sure of it."""
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        if os.getresuid() != (user,) * 3 or os.getresgid() != (user,) * 3 or os.getgroups():
            raise Unfit("the user could not be changed")
    drop_capabilities()
    if 0 in os.getresuid():
        raise Unfit("the process would run as root")


def _reach(library: list[str], descriptors: list[int]) -> None:
    """Import through open directories, where the paths of the library are closed to the user of this process."""
    if all(map(_readable, library)):
        for descriptor in descriptors:
            os.close(descriptor)
    else:
        sys.path[:] = [f"/proc/self/fd/{descriptor}" for descriptor in descriptors]
    sys.path_importer_cache.clear()


def _readable(folder: str) -> bool:
    try:
        os.scandir(folder).close()
    except OSError:
        return False
    return True


def _die_with(parent: int) -> None:
    """End when the warden does, however that comes; a change of user would have undone it."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise Unfit("the warden is gone")


def _settle(folder: str) -> None:
    """Have an environment of its own, and signals as Python expects them."""
    os.environ.clear()
    os.environ.update({"HOME": folder, "TMPDIR": folder, "PATH": _PATH, "LANG": "C.UTF-8"})
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    gc.enable()
