"""The tools ``fs_glob`` and ``fs_grep``."""

from __future__ import annotations

from typing import Any

from attrs import asdict
from dsh_hookspecs import (
    Content,
    FileLocation,
    GenericCall,
    JsonValue,
    SearchFile,
    SearchMatch,
    SearchResult,
    ToolRunContext,
)

from dsh_plugin_fs._match import literal_matcher, regex_matcher
from dsh_plugin_fs._present import (
    COUNT,
    FLAG,
    STRING,
    Args,
    always,
    counted,
    listing,
    parameter,
    poll_of,
    record,
    text_content,
)
from dsh_plugin_fs._search import Searcher
from dsh_runtime import ToolDefinition, ToolOutput, define_tool

_OUTCOME: dict[str, Args] = {
    "total": COUNT,
    "truncated": FLAG,
    "skipped": {"type": "object", "additionalProperties": True},
}
_PATHS = record(paths=listing(STRING), **_OUTCOME)
_LINES = record(files=listing(record(path=STRING, matches=listing(record(line_number=COUNT, line=STRING)))), **_OUTCOME)


def glob_tool(searcher: Searcher) -> ToolDefinition:
    """Make the tool that finds files by name."""

    def execute(args: Args, exec: ToolRunContext) -> JsonValue:
        found = searcher.glob(args["pattern"], args.get("path", "."), poll_of(exec))
        return {"paths": found.paths, "total": found.total, "truncated": found.truncated, "skipped": found.skipped}

    return define_tool(
        name="fs_glob",
        description=(
            f"Find files by name. {searcher.roots.describe()} In the pattern, * and ? stay within one name, ** stands "
            "for any number of directories, {a,b} for either. Hidden files count; links are not followed. "
            f"{searcher.describe_ignored()} At most {searcher.limits.max_results} paths are listed, sorted by name."
        ),
        parameters={
            "pattern": parameter(STRING, "Which files, relative to path: '**/*.py', 'src/*.{c,h}'.", required=True),
            "path": parameter(STRING, "The directory to start in; the first root by default."),
        },
        output=ToolOutput(schema=_PATHS, render=render_paths, presentation_meta=lambda args, value: value),
        execute=execute,
        is_concurrency_safe=always(True),
        idempotent=True,
        present_call=present_call,
        present_result=present_paths,
    )


def grep_tool(searcher: Searcher) -> ToolDefinition:
    """Make the tool that finds lines by content."""

    def execute(args: Args, exec: ToolRunContext) -> JsonValue:
        make = regex_matcher if args.get("regex", False) else literal_matcher
        matcher = make(args["pattern"], ignore_case=args.get("ignore_case", False))
        found = searcher.grep(matcher, args.get("path", "."), args.get("glob", "**"), poll_of(exec))
        files = [asdict(file) for file in found.files]
        return {"files": files, "total": found.total, "truncated": found.truncated, "skipped": found.skipped}

    return define_tool(
        name="fs_grep",
        description=(
            f"Find lines by content, as literal text or with regex=true as a regular expression; one line at a time. "
            f"{searcher.roots.describe()} Hidden files count; links are not followed. {searcher.describe_ignored()} "
            f"Binary files and very large ones are skipped and counted. At most {searcher.limits.max_results} lines "
            "are listed."
        ),
        parameters={
            "pattern": parameter(STRING, "The text to look for.", required=True),
            "path": parameter(STRING, "The file or directory to search; the first root by default."),
            "glob": parameter(STRING, "Which files: '*.py' by name anywhere, 'src/**/*.py' by path below path."),
            "regex": parameter(FLAG, "Whether pattern is a regular expression; false by default."),
            "ignore_case": parameter(FLAG, "Whether upper and lower case are the same; false by default."),
        },
        output=ToolOutput(schema=_LINES, render=render_lines, presentation_meta=lambda args, value: value),
        execute=execute,
        is_concurrency_safe=always(True),
        idempotent=True,
        present_call=present_call,
        present_result=present_lines,
    )


def render_paths(args: Args, value: Any) -> Content:
    """List the paths and say what is missing."""
    return text_content("\n".join([*value["paths"], _summary(value, "file", len(value["paths"]))]))


def render_lines(args: Args, value: Any) -> Content:
    """List the lines below their files and say what is missing."""
    lines = []
    for file in value["files"]:
        lines.append(file["path"])
        lines += [f"{match['line_number']:>6}\t{match['line']}" for match in file["matches"]]
    shown = sum(len(file["matches"]) for file in value["files"])
    return text_content("\n".join([*lines, _summary(value, "matching line", shown)]))


def present_call(args: Args) -> GenericCall:
    """Show what is about to be searched for."""
    place = args.get("path", ".")
    title = f"Search {place} for {args['pattern']}"
    return GenericCall(title=title, kind="search", locations=[FileLocation(place)])


def present_paths(args: Args, result: Any) -> SearchResult | None:
    """Show the paths."""
    if result.is_error or result.meta is None:
        return None
    meta = result.meta
    title = f"{args['pattern']}: {counted(meta['total'], 'file')}"
    return SearchResult("paths", meta["truncated"], meta["total"], paths=meta["paths"], title=title)


def present_lines(args: Args, result: Any) -> SearchResult | None:
    """Show the matching lines, grouped by file."""
    if result.is_error or result.meta is None:
        return None
    meta = result.meta
    files = [
        SearchFile(file["path"], [SearchMatch(match["line_number"], match["line"]) for match in file["matches"]])
        for file in meta["files"]
    ]
    title = f"{args['pattern']}: {counted(meta['total'], 'matching line')}"
    return SearchResult("matches", meta["truncated"], meta["total"], files=files, title=title)


def _summary(value: Any, noun: str, shown: int) -> str:
    found = counted(value["total"], noun)
    parts = [f"{found}, the first {shown:,} listed; narrow the search" if value["truncated"] else found]
    skipped = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in sorted(value["skipped"].items())]
    return f"({'; skipped: '.join([*parts, ', '.join(skipped)] if skipped else parts)})"
