"""``dsh-run explain --would``: what policy would decide about a call that is not made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from dsh_runtime.cli.errors import FAILED, SUCCESS
from dsh_runtime.cli.options import Options
from dsh_runtime.cli.output import Output
from dsh_runtime.cli.record.telling import Teller, shown_arguments
from dsh_runtime.cli.text import one_line

if TYPE_CHECKING:
    from dsh_hookspecs import JsonValue

    from dsh_runtime.loader.host import Host
    from dsh_runtime.tools.foresight import Foresight

_VERDICTS: Final = {
    "allow": ("would be allowed", "bold green"),
    "ask": ("somebody would have to allow it", "bold yellow"),
    "refuse": ("would be refused", "bold red"),
}


def foresee(options: Options, name: str, words: Sequence[str], document: str | None) -> int:
    """Ask policy, and show what each listener and guard said."""
    from dsh_runtime.cli.arguments import read_document, split_pairs
    from dsh_runtime.cli.running import run

    pairs = split_pairs(words)
    given = read_document(document, bool(pairs))
    output = Output(options.output)
    return run(lambda interruption: _foresee(options, output, name, given, pairs))


async def _foresee(options: Options, output: Output, name: str, document: dict[str, Any] | None, pairs: Any) -> int:
    from dsh_runtime.cli.arguments import build_arguments, read_piped
    from dsh_runtime.cli.call import parameters_of
    from dsh_runtime.cli.session import open_session

    async with open_session(options) as host:
        parameters = parameters_of(host, name)
        given = await read_piped(parameters) if document is None else document
        arguments = build_arguments(given, pairs, parameters, name)
        foresight = await _ask(host, name, arguments)
        told = _masked(host, _document(name, arguments, foresight))
    if output.is_json:
        output.document(told)
    else:
        _show(output, told)
    return FAILED if foresight.verdict == "refuse" else SUCCESS


async def _ask(host: Host, name: str, arguments: Any) -> Foresight:
    from dsh_hookspecs import AbortController

    from dsh_runtime.tools.definition import ToolExecutionInput

    agent = host.ctx.scope()
    try:
        call_id, signal = f"would-{os.urandom(6).hex()}", AbortController().signal
        foresight: Foresight = await host.ctx.tools.foresee(
            ToolExecutionInput(call_id, name, arguments, signal, agent=agent.key)
        )
    finally:
        await agent.dispose()
    return foresight if foresight.verdict == "refuse" else _with_arguments_checked(host, name, arguments, foresight)


def _with_arguments_checked(host: Host, name: str, arguments: Any, foresight: Foresight) -> Foresight:
    """Arguments that the tool's schema refuses are refused after policy, in front of the body."""
    from dsh_hookspecs import ToolErrorInfo

    check = host.ctx.tools.get(name).check
    violations = check.compiled.explain_arguments(arguments) if check is not None else []
    if not violations:
        return foresight
    reason = "; ".join(map(str, violations))
    step: dict[str, JsonValue] = {"stage": "arguments", "answer": "refuse", "detail": reason}
    info = ToolErrorInfo("ToolArgsError", "INVALID_ARGS", host.ctx.tools.owner(name))
    return evolve(foresight, verdict="refuse", reason=reason, info=info, story=[*foresight.story, step])


def _document(name: str, arguments: Any, foresight: Foresight) -> dict[str, Any]:
    info = foresight.info
    return {
        "name": name,
        "arguments": arguments,
        "verdict": foresight.verdict,
        "reason": foresight.reason,
        "code": info.code if info else None,
        "decided_by": info.plugin if info else None,
        "steps": foresight.story,
    }


def _masked(host: Host, document: dict[str, Any]) -> dict[str, Any]:
    """What would be told of a call on record: secrets in it are masked where the host has a redactor."""
    redact = host.ctx.get("redact")
    return document if redact is None else redact.value(document)


def _show(output: Output, told: dict[str, Any]) -> None:
    output.line((f"{one_line(told['name'])}  ", "bold"), shown_arguments(told["arguments"]))
    teller = Teller(output)
    for step in told["steps"]:
        teller.step(step)
    code = f" [{told['code']}]" if told["code"] else ""
    plugin = f" by plugin '{told['decided_by']}'" if told["decided_by"] else ""
    output.line(_VERDICTS[told["verdict"]], code + plugin)
