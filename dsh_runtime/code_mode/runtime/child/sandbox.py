"""The command line of bubblewrap, in which a program has no network and a file system that it can only read.

The program's interpreter is started anew within, and finds this package where it is bound.
"""

from __future__ import annotations

import json
import os
import sys

from .order import Order

#: Where things are within.
FOLDER = "/program"
PACKAGE = "/runtime/child"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime")
_START = f"import sys; sys.path.insert(0, {os.path.dirname(PACKAGE)!r}); from child.sandbox import enter; enter()"


def command(order: Order, python: str) -> list[str]:
    """What is executed in the program's place."""
    words = [str(order["bwrap"]), "--die-with-parent", "--new-session", "--unshare-ipc", "--unshare-pid"]
    words += ["--unshare-net", "--unshare-uts", "--clearenv", "--hostname", "program"]
    words += ["--cap-drop", "ALL"]
    if order["user"] is None:
        words += ["--unshare-user"]
    else:  # what it takes to change the user, within
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    for path in dict.fromkeys((*_SYSTEM, sys.base_prefix)):
        words += ["--ro-bind-try", path, path]
    words += ["--ro-bind", os.path.dirname(__file__), PACKAGE, "--proc", "/proc", "--dev", "/dev"]
    words += _working_directory(order)
    within: Order = {**order, "folder": FOLDER}
    words += ["--remount-ro", "/", "--", _interpreter(python), "-I", "-S", "-B", "-X", "utf8", "-c", _START]
    return [*words, json.dumps(within)]


def _interpreter(python: str) -> str:
    """The interpreter that a virtual environment's own stands for: it is where everything that it needs is bound."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    base = os.path.join(sys.base_prefix, "bin", name)
    return base if os.path.exists(base) else python


def _working_directory(order: Order) -> list[str]:
    """An empty directory: in memory and bounded as a whole where files may be written, else read-only like the rest."""
    if not order["file_bytes"]:
        return ["--dir", FOLDER]
    return ["--perms", "0777", "--size", str(order["file_bytes"]), "--tmpfs", FOLDER]


def enter() -> None:
    """The start within: the order is an argument, the channel descriptor 3."""
    from .program import run

    order: Order = json.loads(sys.argv[1])
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(PACKAGE)]
    run(3, order, os.getppid())
