"""What a process has that no unloading undoes by itself: files, children, what is there once for all."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from attrs import frozen

_DESCRIPTORS: Final = Path("/proc/self/fd")
_TASKS: Final = Path("/proc/self/task")


class Same:
    """An object, equal to itself alone; held, so that no other can take its place in memory."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    __hash__ = None  # type: ignore[assignment]


@frozen(eq=False)
class ProcessState:
    """What there is at one moment: each kind of thing, with the things by name, and the modules."""

    things: Mapping[str, Mapping[str, Any]]
    modules: Mapping[str, ModuleType]

    def left(self, after: ProcessState) -> list[str]:
        """What there is ``after`` and was not before, in words."""
        changed = [line for kind, things in after.things.items() for line in _changes(kind, self.things[kind], things)]
        replaced = [name for name, module in self.modules.items() if after.modules.get(name) is not module]
        # What is imported stays imported, as ever in Python. That does not go for modules made by hand.
        made = [name for name, module in after.modules.items() if name not in self.modules and _is_made(module)]
        return [
            *changed,
            *(f"the module {name!r} in sys.modules, which nobody can import" for name in made),
            *(f"another module, or none, for {name!r} in sys.modules" for name in replaced),
        ]


def _is_made(module: ModuleType) -> bool:
    return getattr(module, "__spec__", None) is None


def _changes(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in after:
        if name not in before:
            yield f"{kind} {name}"
        elif before[name] != after[name]:
            yield f"another {kind.removeprefix('the ')} {name}"
    yield from (f"{kind} {name} gone" for name in before if name not in after and kind not in _COME_AND_GO)


#: What may go while a plugin is checked: it was somebody else's.
_COME_AND_GO: Final = ("the temporary file", "the open file", "the child process")


def process_state(folder: str) -> ProcessState:
    """What there is now; ``folder`` is that of temporary files."""
    things: dict[str, Mapping[str, Any]] = {
        "the temporary file": {str(path): None for path in sorted(Path(folder).rglob("*"))},
        "the open file": _open_files(),
        "the child process": _children(),
        "the handler of the signal": _signal_handlers(),
        "the log handler": _log_handlers(),
        "the environment variable": dict(os.environ),
        "the import path": dict.fromkeys(sys.path),
        "the import hook": {f"{hook!r:.200}": Same(hook) for hook in (*sys.meta_path, *sys.path_hooks)},
        "the hook of Python": _hooks(),
        "the working directory": {os.getcwd(): None},
    }
    return ProcessState(things, dict(sys.modules))


def _open_files() -> dict[str, None]:
    """Open files; one without a name (a pipe, a socket) is told by its kind and number."""
    found: dict[str, None] = {}
    for entry in _listed(_DESCRIPTORS):
        with contextlib.suppress(OSError):  # The one that the listing itself had open.
            found[f"{os.readlink(_DESCRIPTORS / entry)} (descriptor {entry})"] = None
    return found


def _children() -> dict[str, None]:
    found: dict[str, None] = {}
    for task in _listed(_TASKS):
        with contextlib.suppress(OSError):
            for child in (_TASKS / task / "children").read_text().split():
                found[f"{child} ({_command(child)})"] = None
    return found


def _command(process: str) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()[:200] or "ended, not waited for"
    except OSError:
        return "ended"


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # A system that does not tell.
        return []


def _signal_handlers() -> dict[str, Same]:
    return {signal.Signals(number).name: Same(signal.getsignal(number)) for number in _named_signals()}


def _named_signals() -> list[int]:
    return [number for number in signal.valid_signals() if number in set(signal.Signals)]


def _log_handlers() -> dict[str, Same]:
    loggers = [logging.getLogger(), *list(logging.Logger.manager.loggerDict.values())]
    return {
        f"{handler!r:.200} of the logger {logger.name!r}": Same(handler)
        for logger in loggers
        if isinstance(logger, logging.Logger)
        for handler in (*logger.handlers, *logger.filters)
    }


def _hooks() -> dict[str, Same]:
    places = {
        "sys.excepthook": sys.excepthook,
        "sys.unraisablehook": sys.unraisablehook,
        "sys.displayhook": sys.displayhook,
        "sys.stdin": sys.stdin,
        "sys.stdout": sys.stdout,
        "sys.stderr": sys.stderr,
        "sys.settrace": sys.gettrace(),
        "sys.setprofile": sys.getprofile(),
        "threading.excepthook": threading.excepthook,
        "warnings.showwarning": warnings.showwarning,
        "builtins.open": open,
        "builtins.print": print,
        "builtins.__import__": __import__,
    }
    return {name: Same(value) for name, value in places.items()}


@contextlib.contextmanager
def temporary_files_in_a_folder() -> Iterator[str]:
    """Have everybody make temporary files in a folder of their own; gives that folder."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="dsh-check-", ignore_cleanup_errors=True) as folder:
        tempfile.tempdir = folder
        try:
            yield folder
        finally:
            tempfile.tempdir = before
