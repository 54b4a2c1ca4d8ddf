"""Pieces that the tools share to show what they did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from dsh_hookspecs import Content, ToolRunContext

from dsh_plugin_fs._limits import Poll

#: Arguments and values as the runtime hands them over: checked against the tool's schemas.
Args: TypeAlias = Mapping[str, Any]

STRING = {"type": "string"}
COUNT = {"type": "integer"}
FLAG = {"type": "boolean"}

_LANGUAGES = {
    ".bash": "bash",
    ".c": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".css": "css",
    ".go": "go",
    ".h": "c",
    ".hpp": "cpp",
    ".html": "html",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".jsx": "jsx",
    ".kt": "kotlin",
    ".lua": "lua",
    ".md": "markdown",
    ".php": "php",
    ".pl": "perl",
    ".py": "python",
    ".pyi": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".rst": "rst",
    ".sh": "bash",
    ".sql": "sql",
    ".swift": "swift",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "tsx",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
}


class CallStoppedError(Exception):
    """The call's signal was aborted; the reason is the cause."""


def poll_of(exec: ToolRunContext) -> Poll:
    """Return a function that raises once the call is to stop."""
    signal = exec.signal

    def poll() -> None:
        if signal.aborted:
            raise CallStoppedError(f"the call was stopped: {signal.reason}") from signal.reason

    return poll


def text_content(text: str) -> Content:
    """Return the content that is one text."""
    return [{"type": "text", "text": text}]


def parameter(kind: Mapping[str, Any], description: str, *, required: bool = False) -> dict[str, Any]:
    """Return one parameter of a tool."""
    return {**kind, "description": description} | ({"required": True} if required else {})


def record(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of an object that has exactly these properties."""
    required = {name: {**spec, "required": True} for name, spec in properties.items()}
    return {"type": "object", "additionalProperties": False, "properties": required}


def listing(items: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of an array."""
    return {"type": "array", "items": dict(items)}


def nullable(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a value that may be null."""
    return {"oneOf": [dict(spec), {"type": "null"}]}


def language_of(path: str) -> str | None:
    """Name the language of a file by the end of its name, for a UI to colour it."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower())


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def always(answer: bool) -> Callable[[Any], bool]:
    """Return the classifier that gives one answer whatever the arguments."""
    return lambda args: answer
