"""The tool ``fs_read``."""

from __future__ import annotations

from typing import Any

from attrs import asdict
from dsh_hookspecs import Content, FileLocation, GenericCall, JsonValue, ReadLine, ReadResult, ToolRunContext

from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._present import (
    COUNT,
    STRING,
    Args,
    always,
    counted,
    language_of,
    listing,
    nullable,
    parameter,
    poll_of,
    record,
    text_content,
)
from dsh_plugin_fs._read import read_window
from dsh_plugin_fs._roots import Roots
from dsh_runtime import ToolDefinition, ToolOutput, define_tool

_VALUE = record(
    path=STRING,
    offset=COUNT,
    lines=listing(record(number=COUNT, text=STRING, cut=COUNT)),
    size=COUNT,
    total_lines=nullable(COUNT),
    counted_lines=COUNT,
    next_offset=nullable(COUNT),
)


def read_tool(roots: Roots, limits: Limits) -> ToolDefinition:
    """Make the tool that reads a window of a text file."""

    def execute(args: Args, exec: ToolRunContext) -> JsonValue:
        offset, limit = int(args.get("offset", 1)), int(args.get("limit", limits.max_read_lines))
        return asdict(read_window(roots, args["path"], offset, limit, limits, poll_of(exec)))

    return define_tool(
        name="fs_read",
        description=(
            f"Read a UTF-8 text file, or a window of it. {roots.describe()} Lines are numbered from 1; at most "
            f"{limits.max_read_lines} lines or {limits.max_read_bytes} bytes come at once, then read on at the offset "
            "that the result names. Very long lines are cut. Binary files are refused."
        ),
        parameters={
            "path": parameter(STRING, "The file to read.", required=True),
            "offset": parameter(COUNT, "The first line to read, from 1 (the default)."),
            "limit": parameter(COUNT, f"How many lines to read; {limits.max_read_lines} by default and at most."),
        },
        output=ToolOutput(schema=_VALUE, render=render, presentation_meta=lambda args, value: value),
        execute=execute,
        is_concurrency_safe=always(True),
        idempotent=True,
        present_call=present_call,
        present_result=present_result,
    )


def render(args: Args, value: Any) -> Content:
    """Show the lines with their numbers, and what lies around the window."""
    lines = [f"{line['number']:>6}\t{line['text']}{_cut_note(line)}" for line in value["lines"]]
    return text_content("\n".join([*lines, f"({_summary(value)})"]))


def present_call(args: Args) -> GenericCall:
    """Show which file is about to be read."""
    offset = int(args.get("offset", 1))
    # The body refuses an offset in front of the first line; until then there is a view of it, too.
    location = FileLocation(args["path"], offset if offset >= 1 else None)
    return GenericCall(title=f"Read {args['path']}", kind="read", locations=[location])


def present_result(args: Args, result: Any) -> ReadResult | None:
    """Show the window as code."""
    if result.is_error or result.meta is None:
        return None
    window = result.meta
    lines = [ReadLine(line["number"], line["text"] + _cut_note(line)) for line in window["lines"]]
    return ReadResult(
        path=window["path"],
        offset=window["offset"],
        lines=lines,
        total_lines=window["counted_lines"],
        title=f"{window['path']}: {_summary(window)}",
        lang=language_of(window["path"]),
        content=text_content("\n".join(line.text for line in lines)),
    )


def _cut_note(line: Any) -> str:
    return f" … [{counted(line['cut'], 'more byte')}]" if line["cut"] else ""


def _summary(window: Any) -> str:
    total = "more than " if window["total_lines"] is None else ""
    total += counted(window["counted_lines"], "line")
    lines = window["lines"]
    if not lines:
        return (
            f"no line at offset {window['offset']}; the file has {total}" if window["counted_lines"] else "empty file"
        )
    shown = f"lines {lines[0]['number']} to {lines[-1]['number']} of {total}"
    return shown if window["next_offset"] is None else f"{shown}; read on with offset {window['next_offset']}"
