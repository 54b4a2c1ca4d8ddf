"""Tells when a coroutine has to wait for the first time: what does not wait at all needs nobody to take over."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from dsh_runtime.tools.scope import driven


@types.coroutine
def noticing(work: Coroutine[Any, Any, Any], suspended: Callable[[], None]) -> Generator[Any, Any, Any]:
    """``await work``, in the same task; ``suspended`` is called right before it first waits, if it does."""
    try:
        trap = work.send(None)
    except StopIteration as ended:
        return ended.value
    suspended()
    return (yield from driven(work, trap))
