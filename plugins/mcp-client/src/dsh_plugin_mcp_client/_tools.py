"""A server's tools as tools of the host."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, Final

import trio
from attrs import frozen
from dsh_hookspecs import ToolArgsError, ToolOutputError, ToolRunContext
from mcp.shared.inbound import find_invalid_x_mcp_header

from dsh_plugin_mcp_client._config import Config
from dsh_plugin_mcp_client._connection import Connection
from dsh_plugin_mcp_client._errors import McpServerGoneError
from dsh_plugin_mcp_client._results import outcome_of
from dsh_plugin_mcp_client._schemas import Checker, SchemaProblemError
from dsh_runtime import ToolDefinition, ToolOutput, ToolReply, thaw

#: A value that is longer as JSON is checked in a thread, where it holds up nobody.
_LONG: Final = 20_000


class UnusableToolError(Exception):
    """A tool of a server cannot be offered; the message says why."""


@frozen(eq=False)
class RemoteTool:
    """One tool as the server lists it, and what checks its values."""

    name: str
    entry: dict[str, Any]
    arguments: Checker | None
    output: Checker | None


def read_tool(entry: Any, config: Config) -> RemoteTool:
    """Take over one entry of a list; :class:`UnusableToolError` if it cannot be offered."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise UnusableToolError("has no name")
    if not isinstance(entry.get("description", ""), str):
        raise UnusableToolError("has a description that is no text")
    try:
        size = len(json.dumps(entry, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError) as error:
        raise UnusableToolError(f"cannot be written as JSON ({type(error).__name__})") from None
    if size > config.max_schema_bytes:
        raise UnusableToolError(f"is described in {size:,} bytes, more than {config.max_schema_bytes:,}")
    if config.url is not None and (problem := find_invalid_x_mcp_header(entry.get("inputSchema"))) is not None:
        raise UnusableToolError(f"has an input schema with an x-mcp-header that cannot be sent: {problem:.200}")
    checked = config.validation != "off"
    return RemoteTool(
        entry["name"],
        entry,
        _checker("input", entry.get("inputSchema"), checked),
        _checker("output", entry["outputSchema"], checked) if entry.get("outputSchema") is not None else None,
    )


def _checker(what: str, schema: Any, checked: bool) -> Checker | None:
    if not isinstance(schema, dict):
        raise UnusableToolError(f"has an {what} schema that is no object")
    if not checked:
        return None
    try:
        return Checker(schema)
    except SchemaProblemError as problem:
        raise UnusableToolError(f"has an {what} schema that {problem}") from None


class Caller:
    """Calls one tool through whatever connection there is now."""

    def __init__(
        self,
        tool: RemoteTool,
        subject: str,
        connection: Callable[[], Connection | None],
        config: Config,
        logger: logging.Logger,
    ) -> None:
        self._tool = tool
        self._subject = subject
        self._connection = connection
        self._config = config
        self._logger = logger

    def definition(self) -> ToolDefinition:
        """The tool as the host knows it; its schemas are relayed as they came."""
        entry = self._tool.entry
        hints = entry.get("annotations") if self._config.trust_annotations else None
        hints = hints if isinstance(hints, dict) else {}
        reads = hints.get("readOnlyHint") is True
        output = entry.get("outputSchema")
        return ToolDefinition(
            name=f"{self._config.prefix}{self._tool.name}",
            description=entry.get("description", ""),
            parameters=entry["inputSchema"],
            output=ToolOutput(schema={}, relayed=output, structured=output is not None),
            execute=self.execute,
            is_concurrency_safe=(lambda args: True) if reads else None,
            idempotent=reads or hints.get("idempotentHint") is True,
        )

    async def execute(self, args: Any, exec: ToolRunContext) -> ToolReply:
        """Check the arguments, call the server, check what it answers."""
        subject = f"tool {self._tool.name!r} of {self._subject}"
        arguments = thaw(args)
        await self._check(self._tool.arguments, arguments, ToolArgsError, f"{subject} refuses its arguments")
        connection = self._connection()
        if connection is None:
            raise McpServerGoneError(f"{self._subject} is not there; it is being connected to")

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            exec.progress(progress, total, message)

        reply = outcome_of(await connection.call(self._tool.name, arguments, progressed), subject)
        if self._tool.output is not None:
            # Without structured content the value is the content, which the schema is not about: that is refused, too.
            await self._check(self._tool.output, reply.value, ToolOutputError, f"{subject} answered against its schema")
        return reply

    async def _check(self, checker: Checker | None, value: Any, error: Callable[[str], Exception], what: str) -> None:
        if checker is None:
            return
        problems = await _problems(checker, value)
        if not problems:
            return
        message = f"{what}: {'; '.join(problems)}"
        if self._config.validation == "strict":
            raise error(message)
        self._logger.warning("%s", message)


async def _problems(checker: Checker, value: Any) -> list[str]:
    try:
        long = len(json.dumps(value, ensure_ascii=False)) > _LONG
    except (ValueError, RecursionError):
        long = True
    if long:
        return await trio.to_thread.run_sync(checker.problems, value)
    return checker.problems(value)
