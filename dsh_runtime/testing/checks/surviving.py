"""Reload and cancellation: calls go on as before, those under way come to rest, and each has one result."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio
import trio.lowlevel
import trio.testing

from dsh_runtime.testing.asserts import tell
from dsh_runtime.testing.calls import Call
from dsh_runtime.testing.checks.ending import aborted, cancelled
from dsh_runtime.testing.checks.subject import PROBE, STAGES, Neighbour, Subject, fiber_of, made, tried, within
from dsh_runtime.testing.trial import Trial

#: At so many of its first steps a call is cancelled.
_STEPS: Final = 5
#: Real seconds between two calls during a reload: threads, too, are to come to their turn.
_PAUSE: Final = 0.001


async def it_survives_reload(subject: Subject) -> None:
    """Two reloads take, no call beside them is lost, the same calls come out as before, and all stands as it did."""
    with _modules_put_back():
        async with tried(subject, front=[Neighbour("front")], behind=[Neighbour("behind")]) as trial:
            plugin = fiber_of(trial, subject, 1).id
            before = [await _outcome(trial, call) for call in subject.usual]
            order = _order(trial)
            for _ in range(2):
                async with trio.open_nursery() as nursery:
                    under_way = _Traffic(trial)
                    nursery.start_soon(under_way.flow)
                    await _reload(trial, plugin)
                    under_way.stop()
                under_way.check()
            after = [await _outcome(trial, call) for call in subject.usual]
            for call, was, now in zip(subject.usual, before, after, strict=True):
                if was != now:
                    raise AssertionError(f"before the reload the call {call} came out as {was}, and after it as {now}")
            if order != _order(trial):
                raise AssertionError(f"before the reload the listeners were {order}, and after it {_order(trial)}")


class _Traffic:
    """Calls that are made while something else happens."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._over = False
        self._failed: list[str] = []

    async def flow(self) -> None:
        """Call until told to stop."""
        while not self._over:
            result = await made(self._trial, PROBE, "a call during the reload")
            code = result.error.info.code if result.is_error and result.error.info is not None else None
            if code in ("GATE_CLOSED", "UNKNOWN_TOOL", "LISTENER_FAILED"):
                self._failed.append(tell(result))
            await trio.sleep(_PAUSE)

    def stop(self) -> None:
        """Make no more calls."""
        self._over = True

    def check(self) -> None:
        """Raise if a call has been lost."""
        if self._failed:
            raise AssertionError(f"during the reload {len(self._failed)} calls failed, the first as {self._failed[0]}")


async def _reload(trial: Trial, plugin: str) -> None:
    report = await within(trial.host.reload.plugins([plugin]), "the reload")
    if not report.ok:
        raise AssertionError("\n  ".join(["the plugin cannot be reloaded:", *report.lines()]))
    await within(trial.host.reload.rest(), "the end of the old version")


def _order(trial: Trial) -> dict[str, list[str]]:
    events = trial.host.ctx.fiber.kernel.events
    return {stage: [f"{one.plugin} ({one.name})" for one in events.listeners(stage)] for stage in STAGES}


async def _outcome(trial: Trial, call: Call) -> str:
    result = await made(trial, call)
    if not result.is_error:
        return "a success"
    return str(result.error.info.code) if result.error.info is not None else "a failure"


@contextmanager
def _modules_put_back() -> Iterator[None]:
    """A reload makes fresh modules; the tests that follow have imported the old ones, and are to find them again."""
    before = dict(sys.modules)
    try:
        yield
    finally:
        sys.modules.update(before)


async def it_survives_cancellation(subject: Subject) -> None:
    """A call that is aborted, or whose caller is cancelled, comes to rest with one result, and the next is as ever."""
    async with tried(subject) as trial:
        for call in subject.usual:
            await aborted(trial, call)
            for steps in range(_STEPS):
                await cancelled(trial, call, steps=steps)
            await made(trial, PROBE, f"a call after the cancelled call {call}")
