"""What a server answers to a call, as the body's outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsh_hookspecs import ToolFailedError

from dsh_plugin_mcp_client._errors import McpInputRequiredError, McpProtocolError
from dsh_runtime import ToolReply


def outcome_of(result: Mapping[str, Any], subject: str) -> ToolReply:
    """Value and content of a success; raises :class:`ToolFailedError` with its content for a failure.

    The value is the structured content where there is some, else the content itself.
    """
    if result.get("resultType") == "input_required":
        raise McpInputRequiredError(f"{subject} asks for input of a user, which cannot be given through the host")
    content = result.get("content", [])
    if not isinstance(content, list):
        raise McpProtocolError(f"{subject} answered with content that is no list")
    if result.get("isError") is True:
        raise ToolFailedError(_text_of(content) or f"{subject} failed and does not say why", content=content)
    if "structuredContent" in result:
        return ToolReply(result["structuredContent"], content)
    return ToolReply(content, content)


def _text_of(content: list[Any]) -> str:
    texts = (block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))
