"""Tools keep to what they declare, and what is denied is on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dsh_hookspecs import JsonSchemaError, ToolExecutionResult

from dsh_runtime.testing.arguments import arguments_for
from dsh_runtime.testing.asserts import is_denial, tell
from dsh_runtime.testing.calls import Call
from dsh_runtime.testing.checks.subject import PROBE, Subject, fiber_of, made, tried
from dsh_runtime.testing.fakes import Denial
from dsh_runtime.testing.trial import Trial
from dsh_runtime.tools.presentation import DurableResult

#: Calls with generated arguments for each tool.
_EXAMPLES: Final = 15
#: What a body raises where it has not thought of arguments that its schema accepts.
_SLIPS: Final = (
    "AssertionError",
    "AttributeError",
    "IndexError",
    "KeyError",
    "NameError",
    "RecursionError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeEncodeError",
    "ZeroDivisionError",
)


async def its_tools_keep_to_their_schemas(subject: Subject) -> None:
    """What a tool's schema accepts its body can deal with, what comes back is what it declares, and views are pure."""
    async with tried(subject) as trial:
        fiber = fiber_of(trial, subject)
        for call in subject.calls:
            result = await made(trial, call)
            if result.is_error:
                raise AssertionError(f"the call {call}, which is said to succeed, came out as {tell(result)}")
            _views_are_pure(trial, call, result)
        for schema in trial.ctx.tools.schemas():
            name = schema["name"]
            if trial.ctx.tools.owner(name) == fiber.id and name not in subject.never_generate:
                for arguments in _generated(schema["parameters"]):
                    await _keeps(trial, Call(name, arguments))


async def _keeps(trial: Trial, call: Call) -> None:
    result = await made(trial, call)
    info = result.error.info if result.is_error else None
    code = info.code if info is not None else None
    if code in ("INVALID_ARGS", "INVALID_TOOL_OUTPUT"):
        raise AssertionError(f"tool {call.name!r} breaks its own schema with the call {call}: {tell(result)}")
    if info is not None and code is None and info.name in _SLIPS:
        raise AssertionError(
            f"tool {call.name!r} has no answer for the call {call}, which its schema accepts: it raises {info.name}; "
            f"have the schema or the body refuse it. {tell(result)}"
        )
    _views_are_pure(trial, call, result)


def _views_are_pure(trial: Trial, call: Call, result: ToolExecutionResult) -> None:
    definition = trial.ctx.tools.get(call.name, trial.agent)
    project = definition.present_call if definition is not None else None
    if project is not None:
        _twice_the_same("present_call", call, lambda: project(call.arguments))
    complete = definition.present_result if definition is not None else None
    if complete is not None:
        _twice_the_same("present_result", call, lambda: complete(call.arguments, DurableResult.of(result)))


def _twice_the_same(what: str, call: Call, view: Callable[[], Any]) -> None:
    try:
        first, second = view(), view()
    except Exception as error:
        raise AssertionError(f"{what} of tool {call.name!r} raises {error!r} for the call {call}") from error
    if first != second:
        raise AssertionError(f"{what} of tool {call.name!r} gives two views of the call {call}: {first}, then {second}")


def _generated(schema: Any) -> list[Any]:
    """Some values for a schema, always the same ones; none where it is in a dialect of its own."""
    from hypothesis import HealthCheck, Phase, given, settings

    found: list[Any] = []
    try:
        strategy = arguments_for(schema)
    except JsonSchemaError:
        return []

    @settings(
        max_examples=_EXAMPLES,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


async def denied_calls_are_on_record(subject: Subject) -> None:
    """A denied call stands in the log, with who denied it and why."""
    async with tried(subject, behind=[Denial("denied for the record")], log=True) as trial:
        await _on_record(trial, PROBE, "denied for the record")
    if subject.denies:
        async with tried(subject, log=True) as trial:
            for call in subject.calls:
                await made(trial, call)
            for call in subject.denies:
                await _on_record(trial, call, "")


async def _on_record(trial: Trial, call: Call, reason: str) -> None:
    before = len(await trial.on_record("tool/result"))
    result = await made(trial, call, f"the denied call {call}")
    told = [event["payload"] for event in (await trial.on_record("tool/result"))[before:]]
    if not is_denial(result) or not any(_is_told(payload.get("error"), result, reason) for payload in told):
        raise AssertionError(
            f"the denied call {call} is not on record as denied; on record: {told or 'nothing'}; "
            f"it came out as {tell(result)}"
        )


def _is_told(error: Any, result: ToolExecutionResult, reason: str) -> bool:
    info = result.error.info if result.is_error else None
    return (
        isinstance(error, dict)
        and info is not None
        and (error.get("code"), error.get("plugin")) == (info.code, info.plugin)
        and reason in str(error.get("message"))
    )
