"""Calls that are given up, by their signal or with their caller: they come to rest, with one result each."""

from __future__ import annotations

from typing import Final

import trio
import trio.testing

from dsh_runtime.testing.calls import Call
from dsh_runtime.testing.checks.subject import PATIENCE, within
from dsh_runtime.testing.trial import Trial

#: Real seconds without anything happening after which a call is taken to be where it waits.
_STILL: Final = 0.01


async def aborted(trial: Trial, call: Call) -> None:
    """Abort a call that is under way."""
    trial.recorder.clear()
    running = trial.begin(call)
    await trio.testing.wait_all_tasks_blocked(_STILL)
    running.abort("given up by the check")
    await within(running.result(), f"the call {call}, which was aborted,")
    _one_result_each(trial, call)


async def cancelled(trial: Trial, call: Call, what: str = "", *, steps: int | None = None) -> None:
    """Cancel the caller of a call, after so many steps of the loop or when nothing happens any more."""
    trial.recorder.clear()
    ended = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_made_and_told, trial, call, ended)
        await _so_far(steps)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True), trio.move_on_after(PATIENCE.seconds):
            await ended.wait()
        late = not ended.is_set()
    if late:
        text = f"the call {call}{what}, whose caller was cancelled,"
        raise AssertionError(f"{text} had not come to rest after {PATIENCE.seconds:g} s")
    _one_result_each(trial, call)


async def _so_far(steps: int | None) -> None:
    if steps is None:
        await trio.testing.wait_all_tasks_blocked(_STILL)
    for _ in range(steps or 0):
        await trio.lowlevel.checkpoint()


async def _made_and_told(trial: Trial, call: Call, ended: trio.Event) -> None:
    try:
        await trial.call(call)
    finally:
        ended.set()


def _one_result_each(trial: Trial, call: Call) -> None:
    results = [heard.exec.token for heard in trial.recorder.heard if heard.event == "tools/result"]
    entered = {heard.exec.token for heard in trial.recorder.heard if heard.tool is not None}
    if len(results) != len(entered):
        raise AssertionError(f"of {len(entered)} calls in {call}, {len(results)} results were told")
