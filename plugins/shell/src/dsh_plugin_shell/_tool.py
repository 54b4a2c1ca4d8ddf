"""The tool ``shell_run``."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any, TypeAlias

from dsh_hookspecs import Content, JsonValue, TerminalCall, TerminalResult, ToolRunContext

from dsh_plugin_shell._config import Config
from dsh_plugin_shell._order import Order, argv_of, shown
from dsh_plugin_shell._run import Ended, Limits, run
from dsh_runtime import ToolDefinition, ToolOutput, define_tool

#: Arguments and values as the runtime hands them over: checked against the tool's schemas.
Args: TypeAlias = Mapping[str, Any]

_VALUE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "exit_code": {"oneOf": [{"type": "integer"}, {"type": "null"}], "required": True},
        "signal": {"oneOf": [{"type": "string"}, {"type": "null"}], "required": True},
        "output": {"type": "string", "required": True},
        "output_bytes": {"type": "integer", "required": True},
        "truncated": {"type": "boolean", "required": True},
        "invalid_utf8": {"type": "boolean", "required": True},
        "stopped": {"oneOf": [{"type": "string"}, {"type": "null"}], "required": True},
        "background_ended": {"type": "boolean", "required": True},
        "duration_ms": {"type": "integer", "required": True},
    },
}


def shell_tool(config: Config, folder: str, env: Mapping[str, str]) -> ToolDefinition:
    """Make the tool that runs a command in ``folder``."""
    limits = Limits(config.keep_bytes, config.max_output_bytes)

    async def execute(args: Args, exec: ToolRunContext) -> JsonValue:
        def tell(size: int, text: str) -> None:
            exec.progress(size, None, text)

        order = Order(argv_of(args, config.shell), folder, env, config.grace)
        return value_of(await run(order, limits, tell), limits)

    return define_tool(
        name="shell_run",
        description=_description(config, folder),
        parameters=_parameters(config),
        output=ToolOutput(schema=_VALUE, render=render, presentation_meta=lambda args, value: value),
        execute=execute,
        timeout=config.timeout,
        is_concurrency_safe=lambda args: False,
        present_call=lambda args: TerminalCall(title=shown(args), cwd=folder),
        present_result=present_result,
    )


def _description(config: Config, folder: str) -> str:
    how = f"by {' '.join(config.shell)}" if config.shell else "without a shell: give the program and each argument"
    limit = "" if config.timeout is None else f" It has {config.timeout:g} seconds."
    return (
        f"Run a command in the folder '{folder}', {how}. Each call starts afresh, without the variables and the "
        "current folder of the one before. stdin is empty; stdout and stderr come together. Of more than "
        f"{config.keep_bytes:,} bytes of output the beginning and the end are kept. Whatever still runs in the "
        "background when the command ends is ended, too."
        f"{limit}"
    )


def _parameters(config: Config) -> dict[str, Any]:
    if config.shell:
        return {"command": {"type": "string", "required": True, "description": "The command line to run."}}
    description = "The program, and each of its arguments, as they are: nothing is expanded."
    return {"argv": {"type": "array", "items": {"type": "string"}, "required": True, "description": description}}


def value_of(ended: Ended, limits: Limits) -> JsonValue:
    """How a command ended, as the tool's value."""
    code = os.waitstatus_to_exitcode(ended.status)
    too_much = f"it wrote more than {limits.max_output_bytes:,} bytes"
    return {
        "exit_code": code if code >= 0 else None,
        "signal": _name_of(-code) if code < 0 else None,
        "output": ended.output.text,
        "output_bytes": ended.output.size,
        "truncated": ended.output.truncated,
        "invalid_utf8": ended.output.invalid_utf8,
        "stopped": too_much if ended.too_much_output else None,
        "background_ended": ended.background,
        "duration_ms": round(ended.seconds * 1_000),
    }


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def render(args: Args, value: Any) -> Content:
    """The output, and below it how the command ended and what there is to know about the output."""
    output = value["output"]
    between = "" if not output or output.endswith("\n") else "\n"
    return [{"type": "text", "text": f"{output}{between}({'; '.join(_facts(value))})"}]


def _facts(value: Any) -> list[str]:
    ended = f"ended by {value['signal']}" if value["signal"] else f"exit code {value['exit_code']}"
    notes = {
        f"stopped: {value['stopped']}": value["stopped"] is not None,
        "no output": not value["output_bytes"],
        f"output of {value['output_bytes']:,} bytes cut": value["truncated"],
        "bytes that are no UTF-8 were replaced by U+FFFD": value["invalid_utf8"],
        "background processes were ended": value["background_ended"],
    }
    return [ended, *(note for note, holds in notes.items() if holds)]


def present_result(args: Args, result: Any) -> TerminalResult | None:
    """Show the output and the status."""
    if result.is_error or result.meta is None:
        return None
    meta = result.meta
    return TerminalResult(output=meta["output"], exit_code=meta["exit_code"], signal=meta["signal"])
