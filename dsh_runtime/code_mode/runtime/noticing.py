"""Tells when a coroutine has to wait for the first time: what does not wait at all needs nobody to take over."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def noticing(work: Coroutine[Any, Any, T], suspended: Callable[[], None]) -> Generator[Any, Any, T]:
    """``await work``, in the same task; ``suspended`` is called right before it first waits, if it does."""
    steps = work.__await__()
    try:
        message = next(steps)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    suspended()
    while True:
        proceed: Callable[[Any], Any] = steps.send
        try:
            answer = yield message
        except BaseException as error:
            proceed, answer = steps.throw, error
        try:
            message = proceed(answer)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
