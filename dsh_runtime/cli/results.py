"""A call's result, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsh_hookspecs import ToolExecutionFailure, ToolExecutionResult

from dsh_runtime.cli.text import one_line


def result_document(result: ToolExecutionResult) -> dict[str, Any]:
    """The result as JSON; every member is always there."""
    return {
        "is_error": result.is_error,
        "content": result.content,
        "value": None if isinstance(result, ToolExecutionFailure) else result.value,
        "error": _error_document(result) if isinstance(result, ToolExecutionFailure) else None,
        "meta": result.meta,
        "additional_contexts": [
            {"content": context.content, "source": context.source, "meta": context.meta}
            for context in result.additional_contexts
        ],
    }


def _error_document(result: ToolExecutionFailure) -> dict[str, Any]:
    info = result.error.info
    return {
        "message": result.error.message,
        "name": info.name if info else None,
        "code": info.code if info else None,
        "plugin": info.plugin if info else None,
    }


def failure_line(name: str, result: ToolExecutionFailure) -> str:
    """What went wrong, in one line: the tool, the code, who decided, the message."""
    info = result.error.info
    code = f" [{info.code}]" if info and info.code else ""
    plugin = f" by plugin '{info.plugin}'" if info and info.plugin else ""
    return f"tool '{name}' failed{code}{plugin}: {one_line(result.error.message)}"


def content_text(content: Sequence[Mapping[str, Any]]) -> str:
    """The content as a person reads it; what is no text is named."""
    return "\n".join(map(_block_text, content))


def own_feedback(result: ToolExecutionFailure) -> str:
    """What the model is told of a failure, where that is more than the message."""
    text = content_text(result.content)
    return "" if text in (result.error.message, f"Error: {result.error.message}") else text


def _block_text(block: Mapping[str, Any]) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    details = [str(block[key]) for key in ("mimeType", "uri", "name") if isinstance(block.get(key), str)]
    return f"[{' '.join([str(block.get('type')), *details])}]"
