"""The tool format of chat completions, which many providers share: declarations, calls and their messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dsh_hookspecs import ToolExecutionResult

from dsh_runtime.embed.host import EmbeddedHost, Session
from dsh_runtime.embed.names import safe_names


def openai_tools(host: EmbeddedHost, session: Session | None = None) -> list[dict[str, Any]]:
    """The tools that a session sees, as the ``tools`` of a request."""
    return [_declaration(schema, name) for schema, name in named_schemas(host.tools(session))]


def named_schemas(schemas: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Each tool's schema with the name that the model is to use."""
    names = safe_names(schema["name"] for schema in schemas)
    return [(schema, names[schema["name"]]) for schema in schemas]


def _declaration(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    function = {"name": name, "description": schema["description"], "parameters": schema["parameters"]}
    return {"type": "function", "function": function}


def run_tool_calls(
    host: EmbeddedHost, tool_calls: Iterable[Any], session: Session | None = None
) -> list[dict[str, Any]]:
    """Make the calls of an assistant's message, one after the other; give the messages to send back.

    ``tool_calls`` are those of a response, as objects of the SDK or as plain dicts.
    """
    names = {name: schema["name"] for schema, name in named_schemas(host.tools(session))}
    return [_answered(host, call, names, session) for call in map(_plain, tool_calls)]


async def arun_tool_calls(
    host: EmbeddedHost, tool_calls: Iterable[Any], session: Session | None = None
) -> list[dict[str, Any]]:
    """:func:`run_tool_calls`, under asyncio; in order, too: whether calls may overlap is the tools' business."""
    names = {name: schema["name"] for schema, name in named_schemas(await host.atools(session))}
    messages = []
    for call in map(_plain, tool_calls):
        arguments, problem = _arguments(call)
        if problem is not None:
            messages.append(_message(call, problem))
            continue
        name = call["function"]["name"]
        result = await host.acall(names.get(name, name), arguments, session=session)
        messages.append(_message(call, text_of(result)))
    return messages


def _answered(
    host: EmbeddedHost, call: Mapping[str, Any], names: Mapping[str, str], session: Session | None
) -> dict[str, Any]:
    arguments, problem = _arguments(call)
    if problem is not None:
        return _message(call, problem)
    name = call["function"]["name"]
    return _message(call, text_of(host.call(names.get(name, name), arguments, session=session)))


def _plain(call: Any) -> Mapping[str, Any]:
    return call if isinstance(call, Mapping) else call.model_dump()


def _arguments(call: Mapping[str, Any]) -> tuple[Any, str | None]:
    """What the model wants to give; or what to tell it, if that is no JSON."""
    text = call["function"].get("arguments") or "{}"
    try:
        return json.loads(text), None
    except (ValueError, RecursionError) as error:
        return None, f"Error: the arguments are no JSON ({error}); call again with a JSON object"


def _message(call: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def text_of(result: ToolExecutionResult) -> str:
    """What a model reads of a result: its texts, then those of its context messages; other blocks as their JSON."""
    contents = [result.content, *(message.content for message in result.additional_contexts)]
    return "\n".join(_block_text(block) for content in contents for block in content)


def _block_text(block: Any) -> str:
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else json.dumps(block, ensure_ascii=False)


__all__ = ["arun_tool_calls", "openai_tools", "run_tool_calls", "text_of"]
