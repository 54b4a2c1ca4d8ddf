"""A plugin that fails fails closed: whichever of its listeners, lines and services it is, and however it fails."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from dsh_hookspecs import ToolExecutionResult

from dsh_runtime.loader.ownership import roots_of
from dsh_runtime.testing.asserts import tell
from dsh_runtime.testing.calls import Call
from dsh_runtime.testing.checks.deciding import SHORT
from dsh_runtime.testing.checks.ending import cancelled
from dsh_runtime.testing.checks.faults import Fault
from dsh_runtime.testing.checks.subject import Subject, fiber_of, has_begun, made, tried
from dsh_runtime.testing.checks.tampering import BEFORE_THE_BODY, Spot, broken, hanging, raising, services_of, spots_of
from dsh_runtime.testing.trial import Trial
from dsh_runtime.tools.registry import GUARD

#: So many lines fail, spread over all that run: a policy that runs more is asked often enough.
_MAX_FAULTS: Final = 120
_RUBBISH: Final[dict[str, tuple[Any, ...]]] = {
    "tools/pre-execute": (None, True, 0, "allow", object()),
    "tools/post-execute": (None, True, 0, "accept", object()),
    # Whatever JSON the tool declares may be its wrapper's answer, too.
    "tools/execute": (object(),),
    # A reason and ``None`` are what a guard answers.
    GUARD: (True, 0, object()),
}


async def it_fails_closed_when_it_raises(subject: Subject) -> None:
    """Whichever listener, guard, line or service of the plugin raises, nothing gets through that would not else."""
    with _silence():
        await _each_listener(subject, lambda stage: [raising], "raises")
        await _each_service(subject, raising, "raises")
        await _each_line(subject)


async def it_fails_closed_when_it_hangs(subject: Subject) -> None:
    """Whichever listener or service of the plugin hangs, its calls end at policy's deadline, or with their caller."""
    with _silence():
        await _each_listener(subject, lambda stage: [] if stage in (GUARD, "tools/execute") else [hanging], "hangs")
        await _each_hanging_wrapper(subject)
        await _each_service(subject, hanging, "hangs")


async def it_fails_closed_when_it_answers_rubbish(subject: Subject) -> None:
    """Whichever listener, guard or service of the plugin answers rubbish, nothing gets through that would not else."""
    with _silence():
        await _each_listener(subject, _rubbish_at, "answers rubbish")
        await _each_service(subject, _nothing, "answers nothing")


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """The host tells of each failure, and here there are many, all of them on purpose."""
    logger = logging.getLogger("dsh")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _rubbish_at(stage: str) -> list[Callable[[], Any]]:
    return [lambda value=value: value for value in _RUBBISH[stage]]  # type: ignore[misc]


def _nothing() -> None:
    return None


async def _each_listener(subject: Subject, ways: Callable[[str], Iterable[Callable[[], Any]]], how: str) -> None:
    async with tried(subject, settings=SHORT) as trial:
        for spot in spots_of(fiber_of(trial, subject)):
            for way in ways(spot.stage):
                await _answering(trial, subject, spot, way, how)


async def _answering(trial: Trial, subject: Subject, spot: Spot, way: Callable[[], Any], how: str) -> None:
    """Make the calls while one listener or guard answers otherwise; those that it is asked about have to fail."""
    with spot.replaced(trial, way):
        for call in (*subject.usual, *subject.denies):
            spot.hits.clear()
            trial.recorder.clear()
            result = await made(trial, call, f"the call {call} whose {spot.where} {how}")
            if spot.hits:
                _closed(trial, call, result, spot, f"{spot.where} on {spot.stage!r} {how}")


def _closed(trial: Trial, call: Call, result: ToolExecutionResult, spot: Spot, why: str) -> None:
    info = result.error.info if result.is_error else None
    if info is None or info.plugin != spot.entry.fiber.id:
        raise AssertionError(f"{why}, and the call {call} came out as {tell(result)}")
    if spot.stage in BEFORE_THE_BODY and has_begun(trial, call.name):
        raise AssertionError(f"{why}, and the body of the call {call} began; what was heard:\n{trial.recorder.told()}")


async def _each_hanging_wrapper(subject: Subject) -> None:
    """What hangs around a body has no deadline of the host's; it ends when the caller is cancelled."""
    async with tried(subject) as trial:
        for spot in spots_of(fiber_of(trial, subject)):
            if spot.stage == "tools/execute":
                with spot.replaced(trial, hanging):
                    for call in subject.usual:
                        await cancelled(trial, call, f" whose {spot.where} hangs")


async def _each_service(subject: Subject, way: Callable[[], Any], how: str) -> None:
    """What the plugin denies stays denied when a service that it uses fails."""
    if not subject.denies:
        return
    async with tried(subject) as trial:
        services = list(services_of(trial, fiber_of(trial, subject)))
    for name in services:
        async with _before_the_denials(subject, SHORT if way is hanging else None) as trial:
            service = services_of(trial, fiber_of(trial, subject))[name]
            with broken(service, way):
                await _still_denied(trial, subject, f"the service {name!r} {how}")


async def _each_line(subject: Subject) -> None:
    """What the plugin denies stays denied when a line of its own fails."""
    if not subject.denies:
        return
    async with _before_the_denials(subject) as trial:
        roots = roots_of(fiber_of(trial, subject).spec.source)
        with Fault(roots, None) as counted:
            await _still_denied(trial, subject, "nothing has failed yet")
    step = max(1, -(-counted.lines // _MAX_FAULTS))
    for at in range(1, counted.lines + 1, step):
        async with _before_the_denials(subject) as trial:
            with Fault(roots, at) as fault:
                results = [(call, await made(trial, call)) for call in subject.denies]
            for call, result in results:
                _not_let_through(trial, call, result, f"the plugin's own code raises at {fault.place}")


async def _still_denied(trial: Trial, subject: Subject, why: str) -> None:
    for call in subject.denies:
        _not_let_through(trial, call, await made(trial, call), why)


def _not_let_through(trial: Trial, call: Call, result: ToolExecutionResult, why: str) -> None:
    if not result.is_error or has_begun(trial, call.name):
        raise AssertionError(f"{why}, and the call {call}, which the plugin denies, came out as {tell(result)}")


@asynccontextmanager
async def _before_the_denials(subject: Subject, settings: Mapping[str, Any] | None = None) -> AsyncIterator[Trial]:
    """A host in which the calls that succeed have been made, so that the plugin denies what it is said to."""
    async with tried(subject, settings=settings) as trial:
        for call in subject.calls:
            await made(trial, call)
        trial.recorder.clear()
        yield trial
