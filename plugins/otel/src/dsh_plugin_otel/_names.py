"""Names of attributes and metrics.

Those that begin with ``gen_ai``, ``mcp`` and ``error`` are OpenTelemetry's: the conventions for the execution of tools
by generative AI, which are still in development. Those that begin with ``dsh`` are the runtime's own.
"""

from __future__ import annotations

from typing import Final

OPERATION: Final = "gen_ai.operation.name"
EXECUTE_TOOL: Final = "execute_tool"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
CALL_ID: Final = "gen_ai.tool.call.id"
CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
CALL_RESULT: Final = "gen_ai.tool.call.result"
AGENT_ID: Final = "gen_ai.agent.id"
ERROR_TYPE: Final = "error.type"
#: Taken over from the span of the MCP request that a call comes from.
MCP: Final = ("mcp.method.name", "mcp.protocol.version", "mcp.session.id")

ROOT_CALL_ID: Final = "dsh.root_call.id"
DIGEST: Final = "dsh.call.digest"
STAGE: Final = "dsh.stage"
DECISION: Final = "dsh.decision"
ERROR_PLUGIN: Final = "dsh.error.plugin"

DURATION: Final = "gen_ai.execute_tool.duration"
CALLS: Final = "dsh.tool.calls"
ERRORS: Final = "dsh.tool.errors"
#: What conventions put in place of a value that may be anything.
OTHER: Final = "_OTHER"
