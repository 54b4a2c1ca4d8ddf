"""The threads that sync bodies run in.

A sync body holds a thread for as long as it runs, also while it waits for a call that it makes itself. Were there one
pool for all, bodies that wait could hold every thread of it, each waiting for one. So each depth has a pool of its own:
a body waits only for threads that are deeper than its own, and the deepest wait for none. The depth goes along in a
context variable, which trio hands from a thread to what the thread has run in the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import trio

_depth: ContextVar[int] = ContextVar("dsh_thread_depth", default=0)


class Threads:
    """The pools of one host: so many threads at each depth, which are there only while they are needed."""

    __slots__ = ("_pools",)

    def __init__(self, count: int) -> None:
        self._pools = [trio.CapacityLimiter(count)]

    @property
    def count(self) -> int:
        """How many sync bodies of one depth run at once."""
        return int(self._pools[0].total_tokens)

    @count.setter
    def count(self, count: int) -> None:
        for pool in self._pools:
            pool.total_tokens = count

    async def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Run a function in a thread; what it calls in its turn is one deeper."""
        depth = _depth.get()
        while depth >= len(self._pools):
            self._pools.append(trio.CapacityLimiter(self.count))
        return await trio.to_thread.run_sync(_at_depth, depth + 1, fn, args, limiter=self._pools[depth])


def _at_depth(depth: int, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    # The thread has a context of its own, so nothing has to be put back.
    _depth.set(depth)
    return fn(*args)
