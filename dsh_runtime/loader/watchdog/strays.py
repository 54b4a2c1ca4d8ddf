"""Threads that outlive the plugin that began them.

Plugins are applied one at a time: a thread that has come while one was applied is that plugin's, unless its code
stands in another plugin's files. A thread that has come later is known by its code alone; of two versions of one
plugin, it belongs to the one whose module it runs in.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from dsh_runtime.core.lifecycle import State
from dsh_runtime.loader.leftovers import GRACE, describe_thread, threads
from dsh_runtime.loader.ownership import frames_of, is_within, roots_of

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber

_log = logging.getLogger("dsh.host")

LEFT: Final = "dsh_left"
"""The attribute of a log record that has the plugin and the thread."""
_MAX_WAITING: Final = 1_000
_STEP: Final = 0.02


@frozen(eq=False)
class Life:
    """A life of a plugin that has ended: whose it was, when to look, and where its code stands."""

    token: object
    plugin: str
    due: float
    roots: tuple[str, ...]
    source: Any


class Strays:
    """Follows lives in the loop's thread (:meth:`moved`), and looks for what they left in another (:meth:`look`)."""

    def __init__(self, fibers: Callable[[], Iterable[Fiber]]) -> None:
        self._fibers = fibers
        self._tokens: weakref.WeakKeyDictionary[Fiber, object] = weakref.WeakKeyDictionary()
        self._before: dict[Fiber, set[threading.Thread]] = {}
        self._owners: weakref.WeakKeyDictionary[threading.Thread, object] = weakref.WeakKeyDictionary()
        self._ended: deque[Life] = deque(maxlen=_MAX_WAITING)

    def moved(self, fiber: Fiber, old: State) -> None:
        """A plugin has changed its state."""
        if fiber.state is State.LOADING:
            self._tokens[fiber] = object()
            self._before[fiber] = set(threading.enumerate())
        elif old is State.LOADING:
            self._take(self._tokens.get(fiber), self._before.pop(fiber, set()))
        if old is State.UNLOADING and (token := self._tokens.pop(fiber, None)) is not None:
            source = fiber.spec.source
            self._ended.append(Life(token, fiber.id, time.monotonic() + GRACE, roots_of(source), source))

    def _take(self, token: object, before: set[threading.Thread]) -> None:
        """What has come since the plugin began to load is its own, unless it is somebody's already."""
        for thread in set(threading.enumerate()) - before:
            self._owners.setdefault(thread, token)

    def look(self) -> None:
        """Name the threads that lives have left which ended a while ago."""
        while self._ended and self._ended[0].due <= time.monotonic():
            life = self._ended.popleft()
            for thread in self._left_by(life):
                self._owners[thread] = _TOLD
                _tell(life.plugin, thread)

    def look_at_last(self) -> None:
        """Name what is left now that all lives have ended; wait for it no longer than it takes to end."""
        while self._ended:
            if not self._left_by(self._ended[0]):
                self._ended.popleft()
            else:
                time.sleep(_STEP)
                self.look()

    def _left_by(self, life: Life) -> list[threading.Thread]:
        return sorted((one for one in threads() if self._is_left(one, life)), key=lambda thread: thread.name)

    def _is_left(self, thread: threading.Thread, life: Life) -> bool:
        owner = self._owners.get(thread)
        frames = frames_of(sys._current_frames().get(thread.ident or 0))
        theirs = next((frame for frame in reversed(frames) if is_within(frame.f_code.co_filename, life.roots)), None)
        if owner is not None and owner is not life.token:
            return False
        if theirs is None:
            return owner is life.token and not self._is_anothers(frames)
        return owner is life.token or self._is_stale(theirs, life)

    def _is_anothers(self, frames: list[FrameType]) -> bool:
        """Whether a thread runs in the files of a plugin that is still there."""
        roots = [root for fiber in self._fibers() for root in roots_of(fiber.spec.source)]
        return any(is_within(frame.f_code.co_filename, roots) for frame in frames)

    def _is_stale(self, frame: FrameType, life: Life) -> bool:
        """Whether a frame in a plugin's files is none of the versions that are still there."""
        others = [fiber.spec.source for fiber in self._fibers() if fiber in self._tokens]
        if not any(is_within(frame.f_code.co_filename, roots_of(source)) for source in others):
            return True
        module = sys.modules.get(frame.f_globals.get("__name__", ""))
        return module is None or vars(module) is not frame.f_globals


_TOLD: Final = object()


def _tell(plugin: str, thread: threading.Thread) -> None:
    _log.warning(
        "plugin %r has been unloaded and leaves %s behind; end it and join it in an undo: ctx.effect(lambda: stop)",
        plugin,
        describe_thread(thread),
        extra={LEFT: (plugin, thread)},
    )
