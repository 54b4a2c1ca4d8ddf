"""Denials stand, whoever makes them, and every call gets a decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import trio

from dsh_runtime.testing.asserts import is_denial, tell
from dsh_runtime.testing.calls import Call
from dsh_runtime.testing.checks.subject import PROBE, Subject, fiber_of, made, refused, tried
from dsh_runtime.testing.fakes import Denial
from dsh_runtime.testing.trial import Trial

#: Arguments that a policy has to have an answer for.
ODD_ARGUMENTS: Final[tuple[Any, ...]] = (
    {},
    {"text": "x"},
    {"path": "../../etc/passwd", "command": "rm -rf /", "url": "file:///"},
    {"nested": {"deep": [{"key": None}]}, "": "", "ü\N{MAN}": [1.5, -0.0, 10**30]},
    {"path": None, "command": ["a"], "url": 7},
    [],
    "text",
    None,
)
#: Real seconds that policy has where a check lets it hang.
SHORT: Final = {"policy_timeout": 0.2}


async def a_denied_body_never_starts(subject: Subject) -> None:
    """What is denied in front of the plugin, behind it, by a guard, or by itself, does not begin."""
    async with tried(subject, front=[Denial()]) as trial:
        await _all_refused(trial, subject.usual, "a policy in front of the plugin denies")
    async with tried(subject, behind=[Denial()]) as trial:
        await _all_refused(trial, subject.usual, "a policy behind the plugin denies")
    async with tried(subject) as trial:
        trial.ctx.tools.guard(lambda execution: "no")
        await _all_refused(trial, subject.usual, "a guard denies")
    await _its_own_denials(subject)


async def _all_refused(trial: Trial, calls: Iterable[Call], why: str) -> None:
    for call in calls:
        refused(trial, call, await made(trial, call, f"the denied call {call}"), why)


async def _its_own_denials(subject: Subject) -> None:
    if not subject.denies:
        return
    async with tried(subject) as trial:
        for call in subject.calls:
            await made(trial, call)
        trial.recorder.clear()
        for call in subject.denies:
            result = await made(trial, call)
            refused(trial, call, result, "the plugin is said to deny")
            if not is_denial(result):
                raise AssertionError(f"the plugin is said to deny the call {call}, which came out as {tell(result)}")


async def policy_that_fails_behind_it_fails_the_call(subject: Subject) -> None:
    """A policy behind the plugin that raises, answers rubbish or hangs fails the call, whatever the plugin does."""
    for how, listener in {"raises": _raising, "answers rubbish": _rubbish, "hangs": _hanging}.items():
        async with tried(subject, behind=[_Listener(listener)], settings=SHORT) as trial:
            result = await made(trial, PROBE, f"a call whose policy {how}")
            refused(trial, PROBE, result, f"a policy behind the plugin {how}")


class _Listener:
    name = "saboteur"

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn

    def apply(self, ctx: Any) -> None:
        ctx.on("tools/pre-execute", self._fn)


async def _raising(exec: Any, next: Any) -> Any:
    raise RuntimeError("sabotage")


async def _rubbish(exec: Any, next: Any) -> Any:
    return "allow"


async def _hanging(exec: Any, next: Any) -> Any:
    await trio.sleep_forever()


async def its_policy_has_an_answer_for_every_call(subject: Subject) -> None:
    """No call, however odd, makes a listener or guard of the plugin raise, hang or answer rubbish."""
    named = dict.fromkeys(call.name for call in (*subject.calls, *subject.denies))
    async with tried(subject) as trial:
        for arguments in ODD_ARGUMENTS:
            await _decided(trial, subject, Call(PROBE.name, arguments))
        # The tools of others are spared what their policy is asked about.
        trial.ctx.tools.guard(lambda execution: "only policy is asked")
        for call in (*subject.calls, *subject.denies, *(Call(name, odd) for name in named for odd in ODD_ARGUMENTS)):
            await _decided(trial, subject, call)


async def _decided(trial: Trial, subject: Subject, call: Call) -> None:
    result = await made(trial, call)
    info = result.error.info if result.is_error else None
    if info is not None and info.code == "LISTENER_FAILED" and info.plugin == fiber_of(trial, subject).id:
        raise AssertionError(f"for the call {call} the plugin's policy failed: {tell(result)}")
