"""A thread that waits for changes in some folders, each without those below it.

It sleeps in watchfiles, and looks once a second whether the folders are still those that it watches: one that was
deleted, moved or replaced tells nobody. When it has to watch anew, the new watch stands before the old one ends.
"""

from __future__ import annotations

import logging
import os
import platform
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from .places import Places, Stamp, stamp_of
from .polling import Polling
from .relevance import matters

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

_log = logging.getLogger("dsh.host")

MAX_PATHS: Final = 1_000
"""So many changed files are told one by one; of more, it is said that there are many."""
_STEP: Final = 100
_DEBOUNCE: Final = 500
_LOOK_AGAIN: Final = 1_000
"""In milliseconds: how often it wakes while nothing happens, how long it collects, when it looks at the folders."""


class WatchfilesMissingError(Exception):
    """There is nothing to watch with."""

    def __init__(self) -> None:
        super().__init__("watching files needs watchfiles, which is not installed; install dsh-runtime[dev]")


@frozen
class Changes:
    """What has changed: some paths, or (``missed``) nobody knows what."""

    paths: frozenset[Path] = frozenset()
    missed: bool = False

    def __or__(self, other: Changes) -> Changes:
        paths = self.paths | other.paths
        missed = self.missed or other.missed or len(paths) > MAX_PATHS
        return Changes(frozenset() if missed else paths, missed)


class Watcher:
    """Watches for the body of a ``with``. ``tell`` is called in the watcher's thread."""

    def __init__(self, folders: Iterable[Path], files: Iterable[Path], tell: Callable[[Changes], None]) -> None:
        self._notify = load_notify()
        self._tell = tell
        self._wanted = frozenset(folders)
        self._files = frozenset(files)
        self._stamps: dict[Path, Stamp] = {file: stamp_of(file) for file in self._files}
        self._anew = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="dsh watcher", daemon=True)

    def watch(self, folders: Iterable[Path], files: Iterable[Path]) -> None:
        """Watch these folders, and count these files, from now on."""
        self._files = frozenset(files)
        wanted = frozenset(folders)
        if wanted != self._wanted:
            self._wanted = wanted
            self._anew.set()

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._anew.set()

    def join(self) -> None:
        """Wait for the thread, which has been told to end."""
        self._thread.join()

    def _run(self) -> None:
        watch: _Notified | Polling | None = None
        try:
            while not self._over:
                self._anew.clear()
                places = Places(self._wanted)
                watch = self._renewed(places.to_watch, watch)
                while not self._anew.is_set() and not places.are_others():
                    self._hand_on(watch.wait(self._anew))
                    self._look_at_files()
        except Exception:
            _log.exception("the watcher failed: changed files are no longer noticed; start again")
        finally:
            if watch is not None:
                watch.close()

    def _renewed(self, places: Iterable[Path], old: _Notified | Polling | None) -> _Notified | Polling:
        """A watch of what is there now. What happened before it stood is for the host to find out."""
        new = _watch(places, self._notify)
        if old is not None:
            self._hand_on(old.rest())
            old.close()
        self._tell(Changes(missed=True))
        return new

    def _hand_on(self, changes: Iterable[Path]) -> None:
        found = frozenset(path for path in changes if matters(path, self._files))
        if found:
            self._stamps |= {path: stamp_of(path) for path in found & self._files}
            self._tell(Changes() | Changes(found))

    def _look_at_files(self) -> None:
        """A file behind a symbolic link changes, or is another one, without an event in the link's folder."""
        now = {path: stamp_of(path) for path in self._files}
        changed = frozenset(path for path, stamp in now.items() if self._stamps.get(path, stamp) != stamp)
        self._stamps = now
        if changed:
            self._tell(Changes(changed))


class _Notified:
    """The system tells, by way of watchfiles."""

    def __init__(self, places: Iterable[Path], notify: type[RustNotify]) -> None:
        self._notify = notify([str(place) for place in places], False, False, 0, False, True)

    def wait(self, until: threading.Event) -> list[Path]:
        """What has changed, after at most a second."""
        return _paths_of(self._notify.watch(_DEBOUNCE, _STEP, _LOOK_AGAIN, until))

    def rest(self) -> list[Path]:
        """What has changed that nobody has asked for."""
        return _paths_of(self._notify.watch(1, 1, 1, None))

    def close(self) -> None:
        """Let go of the system's watches."""
        self._notify.close()


def _watch(places: Iterable[Path], notify: type[RustNotify]) -> _Notified | Polling:
    """Watch; where the system has no watches left, look at the files again and again."""
    if _must_poll():
        return Polling(places)
    try:
        return _Notified(places, notify)
    except (OSError, RuntimeError) as error:
        _log.warning("looking at the files again and again, since the system refuses to tell of changes: %s", error)
        return Polling(places)


def _must_poll() -> bool:
    """As watchfiles decides it for itself: by its variable, or where Linux runs inside Windows."""
    wanted = os.environ.get("WATCHFILES_FORCE_POLLING")
    if wanted:
        return wanted.lower() not in ("false", "disable", "disabled")
    return platform.system() == "Linux" and "microsoft-standard" in platform.release().lower()


def _paths_of(answer: Any) -> list[Path]:
    return [Path(path) for _, path in answer] if isinstance(answer, set) else []


def load_notify() -> type[RustNotify]:
    """The part of watchfiles that watches; :class:`WatchfilesMissingError` says what to install."""
    try:
        from watchfiles._rust_notify import RustNotify
    except ImportError:
        raise WatchfilesMissingError from None
    return RustNotify
