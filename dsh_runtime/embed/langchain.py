"""A host's tools as tools of LangChain (``pip install dsh-runtime[langchain]``)."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from dsh_runtime.embed.host import EmbeddedHost, Session
from dsh_runtime.embed.openai import named_schemas, text_of


class HostTool(BaseTool):
    """One tool of an embedded host. The content is the result's text; the artifact is the result itself."""

    _host: EmbeddedHost = PrivateAttr()
    _session: Session | None = PrivateAttr()
    _own_name: str = PrivateAttr()

    def __init__(self, host: EmbeddedHost, session: Session | None, schema: dict[str, Any], name: str) -> None:
        super().__init__(
            name=name,
            description=schema["description"],
            args_schema=schema["parameters"],
            response_format="content_and_artifact",
        )
        self._host, self._session, self._own_name = host, session, schema["name"]

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # As one value: arguments may have any name, also that of a parameter below.
        return ({} if isinstance(tool_input, str) else dict(tool_input),), {}

    def _run(self, arguments: dict[str, Any], **kwargs: Any) -> tuple[str, Any]:
        result = self._host.call(self._own_name, arguments, session=self._session)
        return text_of(result), result

    async def _arun(self, arguments: dict[str, Any], **kwargs: Any) -> tuple[str, Any]:
        result = await self._host.acall(self._own_name, arguments, session=self._session)
        return text_of(result), result


def langchain_tools(host: EmbeddedHost, session: Session | None = None) -> list[BaseTool]:
    """The tools that a session sees now."""
    return [HostTool(host, session, schema, name) for schema, name in named_schemas(host.tools(session))]
