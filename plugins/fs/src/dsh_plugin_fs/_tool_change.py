"""The tools ``fs_write`` and ``fs_edit``."""

from __future__ import annotations

from typing import Any

from attrs import asdict
from dsh_hookspecs import Content, DiffCall, DiffResult, FileDiff, FileLocation, JsonValue, ToolRunContext

from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._present import (
    COUNT,
    FLAG,
    STRING,
    Args,
    always,
    counted,
    listing,
    nullable,
    parameter,
    poll_of,
    record,
    text_content,
)
from dsh_plugin_fs._roots import Roots
from dsh_plugin_fs._write import Writer, Written
from dsh_runtime import ToolDefinition, ToolOutput, define_tool

_VALUE = record(
    path=STRING,
    created=FLAG,
    size=COUNT,
    line_endings={"type": "string", "enum": ["lf", "crlf", "mixed", "none"]},
    hunks=nullable(listing(record(line=COUNT, old_text=nullable(STRING), new_text=STRING))),
    hunks_omitted=COUNT,
)


def write_tool(roots: Roots, writer: Writer, limits: Limits) -> ToolDefinition:
    """Make the tool that writes a whole file."""

    def execute(args: Args, exec: ToolRunContext) -> JsonValue:
        return _value_of(writer.write(args["path"], args["content"], poll_of(exec)))

    return define_tool(
        name="fs_write",
        description=(
            f"Write a whole text file, new or in place of an old one. {roots.describe()} Missing directories are made. "
            "An old file keeps its mode and its line endings. To change a part of a file use fs_edit."
        ),
        parameters={
            "path": parameter(STRING, "The file to write.", required=True),
            "content": parameter(STRING, f"All of its text, up to {limits.max_write_bytes} bytes.", required=True),
        },
        output=ToolOutput(schema=_VALUE, render=render_written, presentation_meta=lambda args, value: value),
        execute=execute,
        is_concurrency_safe=always(False),
        present_call=present_write,
        present_result=present_result,
    )


def edit_tool(roots: Roots, writer: Writer) -> ToolDefinition:
    """Make the tool that replaces one passage of a file."""

    def execute(args: Args, exec: ToolRunContext) -> JsonValue:
        return _value_of(writer.edit(args["path"], args["old_text"], args["new_text"], poll_of(exec)))

    return define_tool(
        name="fs_edit",
        description=(
            f"Replace one passage of a text file. {roots.describe()} It fails unless old_text occurs exactly once: "
            "copy it from the file, and take in enough lines around it to make it unique. Line endings are kept."
        ),
        parameters={
            "path": parameter(STRING, "The file to change.", required=True),
            "old_text": parameter(STRING, "The text to replace, exactly as it stands in the file.", required=True),
            "new_text": parameter(STRING, "The text to put in its place.", required=True),
        },
        output=ToolOutput(schema=_VALUE, render=render_edited, presentation_meta=lambda args, value: value),
        execute=execute,
        is_concurrency_safe=always(False),
        present_call=present_edit,
        present_result=present_result,
    )


def _value_of(written: Written) -> JsonValue:
    hunks = written.hunks
    return {
        "path": written.path,
        "created": written.created,
        "size": written.size,
        "line_endings": written.line_endings,
        "hunks": None if hunks is None else [asdict(hunk) for hunk in hunks.shown],
        "hunks_omitted": 0 if hunks is None else hunks.omitted,
    }


def render_written(args: Args, value: Any) -> Content:
    """Say what was written."""
    verb = "Created" if value["created"] else "Wrote"
    return text_content(f"{verb} '{value['path']}' ({counted(value['size'], 'byte')}).")


def render_edited(args: Args, value: Any) -> Content:
    """Say what was edited, and show the passage as it reads now."""
    passages = "\n".join(hunk["new_text"] for hunk in value["hunks"] or [])
    return text_content(f"Edited '{value['path']}'. It now reads:\n{passages}" if passages else _edited(value))


def _edited(value: Any) -> str:
    return f"Edited '{value['path']}' ({counted(value['size'], 'byte')})."


def present_write(args: Args) -> DiffCall:
    """Show the file as it is going to be."""
    diff = FileDiff(args["path"], None, args["content"])
    return DiffCall(title=f"Write {args['path']}", diffs=[diff], locations=[FileLocation(args["path"])])


def present_edit(args: Args) -> DiffCall:
    """Show the passage before and after."""
    diff = FileDiff(args["path"], args["old_text"], args["new_text"])
    return DiffCall(title=f"Edit {args['path']}", diffs=[diff], locations=[FileLocation(args["path"])])


def present_result(args: Args, result: Any) -> DiffResult | None:
    """Show the passages that changed; nothing if there was nothing to compare or to show."""
    if result.is_error or result.meta is None or not result.meta["hunks"]:
        return None
    path, omitted = result.meta["path"], result.meta["hunks_omitted"]
    diffs = [FileDiff(path, hunk["old_text"], hunk["new_text"]) for hunk in result.meta["hunks"]]
    title = f"{'Created' if result.meta['created'] else 'Changed'} {path}"
    return DiffResult(diffs, title=f"{title} ({counted(omitted, 'more change')} not shown)" if omitted else title)
