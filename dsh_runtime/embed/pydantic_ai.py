"""A host's tools as a toolset of pydantic-ai (``pip install dsh-runtime[pydantic-ai]``).

agent = Agent(model, toolsets=[HostToolset(host)])
"""

from __future__ import annotations

from typing import Any

from dsh_hookspecs import ToolExecutionResult
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from dsh_runtime.embed.host import EmbeddedHost, Session
from dsh_runtime.embed.openai import named_schemas, text_of

#: The host checks the arguments itself.
_ANYTHING = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class HostToolset(AbstractToolset[Any]):
    """The tools that a session of an embedded host sees.

    The model gets a failure as its text, except for arguments that are refused: those it is asked to mend, up to
    ``max_retries`` times.
    """

    def __init__(self, host: EmbeddedHost, session: Session | None = None, *, max_retries: int = 2) -> None:
        self._host = host
        self._session = session
        self._max_retries = max_retries
        self._names: dict[str, str] = {}

    @property
    def id(self) -> str | None:
        """The toolset's name."""
        return "dsh-runtime"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools as they are now."""
        found = named_schemas(await self._host.atools(self._session))
        self._names = {name: schema["name"] for schema, name in found}
        return {name: self._tool(schema, name) for schema, name in found}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        """Make one call through the host's pipeline."""
        result = await self._host.acall(self._names.get(name, name), tool_args, session=self._session)
        if _is_mendable(result):
            raise ModelRetry(text_of(result))
        return text_of(result)

    def _tool(self, schema: dict[str, Any], name: str) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=name, description=schema["description"], parameters_json_schema=schema["parameters"]
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=self._max_retries, args_validator=_ANYTHING)


def _is_mendable(result: ToolExecutionResult) -> bool:
    return bool(result.is_error and result.error.info is not None and result.error.info.code == "INVALID_ARGS")
