"""A host that does not close, because a plugin's task goes on although it is cancelled: say which, and leave."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from dsh_runtime.loader.leftovers import describe_task

if TYPE_CHECKING:
    from dsh_runtime.core.kernel import Kernel

_STEP: Final = 0.25
_OWN_TASKS: Final = ("root plugin", "plugin turns")


@contextlib.contextmanager
def leaving_if_stuck(kernel: Kernel, leave: Callable[[list[str]], None]) -> Iterator[None]:
    """Call ``leave``, from a thread, with the tasks that go on, when no plugin has moved for a teardown's time."""
    over = threading.Event()
    patience = kernel.teardown_timeout + 4 * _STEP

    def watch() -> None:
        seen, waited = _states(kernel), 0.0
        while not over.wait(_STEP):
            now = _states(kernel)
            seen, waited = now, waited + _STEP if now == seen else 0.0
            if waited >= patience:
                leave(_going_on(kernel))
                return

    thread = threading.Thread(target=watch, name="dsh closing", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _states(kernel: Kernel) -> list[tuple[str, str]]:
    """Where every plugin stands; the dictionary may change while it is read."""
    with contextlib.suppress(RuntimeError):
        return [(fiber.id, str(fiber.state)) for fiber in kernel.fibers]
    return []


def _going_on(kernel: Kernel) -> list[str]:
    tasks = [task for task in kernel.nursery.child_tasks if task.name not in _OWN_TASKS]
    return [str(describe_task(task)) for task in tasks]
