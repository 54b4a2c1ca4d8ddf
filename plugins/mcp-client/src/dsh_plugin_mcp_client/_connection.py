"""One connection to a server, from the handshake to its end.

What a server lists and answers is taken as it came: the SDK's own models drop and reorder what they do not know.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Final, Protocol

import anyio
import httpx2
import mcp_types as types
import trio
from mcp.client.session import ClientSession
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_PROTOCOL_VERSION_HEADER,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from dsh_plugin_mcp_client._config import Config
from dsh_plugin_mcp_client._endpoint import endpoint
from dsh_plugin_mcp_client._errors import McpProtocolError, McpRefusedError, McpServerGoneError, McpTimeoutError
from dsh_plugin_mcp_client._messages import NO_ANSWER, MessageReader, MessageWriter
from dsh_plugin_mcp_client._process import program
from dsh_plugin_mcp_client._sieve import Sieve
from dsh_plugin_mcp_client._sieved import SievedReader, SievedWriter

_log = logging.getLogger(__name__)
DISTRIBUTION: Final = "dsh-plugin-mcp-client"
_RAW: Final[Any] = TypeAdapter(dict[str, Any])
_LIST: Final = "tools/list"
_CALL: Final = "tools/call"
#: Codes of a server that has no stream of changes.
_NEVER: Final = (types.METHOD_NOT_FOUND, types.INVALID_PARAMS, types.INVALID_REQUEST)
#: A stream of changes that has ended is opened again after so many seconds.
_LISTEN_AGAIN: Final = 5.0
#: How the SDK says that an endpoint's answer is none.
_NO_ANSWER_SAID: Final = (
    "Failed to parse ",
    "SSE stream ",
    "Unexpected content type",
    "server answered a request with",
)
#: What a transport raises when the other end is not there.
_GONE: Final = (httpx2.HTTPError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)


class Progress(Protocol):
    """Hears how far a call is."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class Way(Protocol):
    """What is known of the other end."""

    @property
    def down(self) -> bool:
        """Whether it is not there."""
        ...

    #: Whether it may have said that it does not know the session any more.
    doubted: bool


class _Pipes:
    """The other end of two pipes."""

    doubted = False

    def __init__(self, reader: MessageReader, writer: MessageWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def down(self) -> bool:
        return self._reader.ended.is_set() or self._writer.broken


class _Dispatcher(JSONRPCDispatcher[TransportContext]):
    """Keeps the last list of tools as it came, and shows the SDK an empty one.

    So what the SDK takes from a list is done here: arguments are mirrored into headers where a schema wants that.
    """

    listed: Any = None
    #: The headers of each tool, by the places of the arguments that they mirror.
    mirrored: Mapping[str, Mapping[tuple[str, ...], str]] = MappingProxyType({})

    async def send_raw_request(self, method: str, params: Any, opts: Any = None, **more: Any) -> dict[str, Any]:
        if method == _CALL and opts is not None and _is_modern(opts):
            mirrored = self.mirrored.get(params["name"], {})
            opts["headers"].update(mcp_param_headers(mirrored, params.get("arguments") or {}))
        result = await super().send_raw_request(method, params, opts, **more)
        if method != _LIST:
            return result
        self.listed = result
        return {**result, "tools": []} if isinstance(result, dict) else result


def _is_modern(opts: Any) -> bool:
    return opts.get("headers", {}).get(MCP_PROTOCOL_VERSION_HEADER) in MODERN_PROTOCOL_VERSIONS


class Connection:
    """A server that has been greeted. ``lost`` is set when it is not there any more, ``changed`` when its tools are."""

    def __init__(
        self,
        session: ClientSession,
        dispatcher: _Dispatcher,
        config: Config,
        subject: str,
        way: Way,
    ) -> None:
        self._session = session
        self._dispatcher = dispatcher
        self._config = config
        self._subject = subject
        self._way = way
        self.lost = trio.Event()
        self.changed = trio.Event()
        self.why: str = "it has gone away"

    async def tools(self) -> list[Any]:
        """What the server lists, page after page, each entry as it came."""
        found: list[Any] = []
        size = 0
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            params = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            await self._request(types.ListToolsRequest(params=params), self._config.connect_timeout)
            page = self._dispatcher.listed
            entries = page.get("tools")
            if not isinstance(entries, list):
                raise McpProtocolError(f"{self._subject} lists tools that are no list")
            size += len(json.dumps(entries)) if found else 0
            found += entries
            if size > self._config.max_message_bytes:
                raise McpProtocolError(
                    f"{self._subject} lists its tools in more than {self._config.max_message_bytes:,} bytes "
                    "(max_message_bytes)"
                )
            if len(found) > self._config.max_tools:
                raise McpProtocolError(f"{self._subject} lists more than {self._config.max_tools} tools (max_tools)")
            cursor = page.get("nextCursor")
            if cursor is None:
                self._dispatcher.mirrored = _mirrored(found)
                return found
            if not isinstance(cursor, str) or cursor in seen:
                raise McpProtocolError(f"{self._subject} lists its tools in circles")
            seen.add(cursor)

    async def call(self, name: str, arguments: Any, progress: Progress) -> dict[str, Any]:
        """The server's answer to one call, as it came."""
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=arguments))
        return await self._request(request, self._config.call_timeout, progress)

    async def follow(self) -> None:
        """Note when the server says that its tools have changed, where the protocol has a stream for that."""
        if self._session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        again = False
        while True:
            try:
                async with listen(self._session, tools_list_changed=True) as events:
                    if again:
                        # Nobody told what has changed meanwhile.
                        self.changed.set()
                    async for _ in events:
                        self.changed.set()
            except (MCPError, RuntimeError, TimeoutError, *_GONE) as error:
                _log.debug("%s does not tell about changes of its tools: %s", self._subject, error)
                if isinstance(error, MCPError) and error.code in _NEVER:
                    return
            again = True
            await trio.sleep(_LISTEN_AGAIN)

    def lose(self, why: str) -> None:
        """The server is not there any more."""
        if not self.lost.is_set():
            self.why = why
            self.lost.set()

    async def _request(self, request: Any, seconds: float | None, progress: Progress | None = None) -> dict[str, Any]:
        subject, began = self._subject, trio.current_time()
        try:
            answer = await self._session.send_request(request, _RAW, seconds, progress_callback=progress)
        except MCPError as error:
            await self._dispel_doubt()
            late = seconds is not None and trio.current_time() - began >= seconds * 0.99
            raise self._refused(error, seconds if late else None) from error
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, problem["loc"]))
            raise McpProtocolError(f"{subject} answered against the protocol: {place}: {problem['msg']}") from None
        except _GONE as error:
            self.lose(f"{type(error).__name__}: {error}")
            raise McpServerGoneError(f"{subject} has gone away during the call") from error
        return answer  # type: ignore[no-any-return]

    async def _dispel_doubt(self) -> None:
        """Ask whether the session is still there, if what the server said leaves that open."""
        if not self._way.doubted:
            return
        self._way.doubted = False
        try:
            await self._session.send_request(types.PingRequest(), _RAW, self._config.connect_timeout)
        except (MCPError, ValidationError, *_GONE) as error:
            if not (isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND):
                self.lose("it does not know the session any more")
        finally:
            self._way.doubted = False

    def _refused(self, error: MCPError, late: float | None) -> Exception:
        """What an error stands for. A server may use the SDK's own codes, so these alone say nothing."""
        if error.code == types.REQUEST_TIMEOUT and late is not None:
            return McpTimeoutError(f"{self._subject} did not answer within {late:g} s")
        if self._way.down or self.lost.is_set():
            self.lose("it closed the connection, or the session")
            return McpServerGoneError(f"{self._subject} has gone away during the call")
        if error.data is NO_ANSWER or error.message.startswith(_NO_ANSWER_SAID):
            return McpProtocolError(f"{self._subject} answered against the protocol: {error.message:.300}")
        return McpRefusedError(f"{self._subject} refused the request: {error.message:.500} ({error.code})")


def _mirrored(entries: list[Any]) -> dict[str, Mapping[tuple[str, ...], str]]:
    """Which arguments go into headers, by the names of the tools; a tool whose schema is wrong about it is left out."""
    found: dict[str, Mapping[tuple[str, ...], str]] = {}
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            schema = entry.get("inputSchema")
            with suppress(RecursionError):
                if find_invalid_x_mcp_header(schema) is None and (headers := x_mcp_header_map(schema)):
                    found[entry["name"]] = headers
    return found


@asynccontextmanager
async def connect(config: Config, subject: str, logger: logging.Logger) -> AsyncIterator[Connection]:
    """Connect for the body. Raises one of the module ``_errors`` if there is no server to speak to."""
    async with AsyncExitStack() as stack:
        read, write, way = await stack.enter_async_context(_transport(config, logger))
        sieve = Sieve()
        sieved = SievedReader(read, sieve)
        dispatcher = _Dispatcher(sieved, SievedWriter(write, sieve))
        box: list[Connection] = []

        async def heard(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification) and box:
                box[0].changed.set()

        info = types.Implementation(name="dsh-runtime", version=version(DISTRIBUTION))
        session = ClientSession(dispatcher=dispatcher, message_handler=heard, client_info=info)
        connection = Connection(session, dispatcher, config, subject, way)
        box.append(connection)
        sieved.on_overrun = connection.lose
        nursery = await stack.enter_async_context(trio.open_nursery())
        stack.callback(nursery.cancel_scope.cancel)
        await stack.enter_async_context(session)
        try:
            with trio.fail_after(config.connect_timeout):
                await _greet(session, config)
        except trio.TooSlowError:
            raise McpTimeoutError(f"{subject} did not greet within {config.connect_timeout:g} s") from None
        except (MCPError, RuntimeError, ValidationError, *_GONE) as error:
            raise _not_greeted(subject, error, read) from error
        if isinstance(read, MessageReader):
            nursery.start_soon(_watch, read, connection)
        nursery.start_soon(connection.follow)
        yield connection


async def _watch(read: MessageReader, connection: Connection) -> None:
    """Note the end of the server's messages."""
    await read.ended.wait()
    connection.lose(str(read.fault) if read.fault is not None else "it ended")


@asynccontextmanager
async def _transport(config: Config, logger: logging.Logger) -> AsyncIterator[tuple[Any, Any, Way]]:
    """The two streams, and what is known of the other end."""
    if config.command is None:
        async with endpoint(config) as streams:
            yield streams
        return
    async with program(config, logger) as (reader, writer):
        yield reader, writer, _Pipes(reader, writer)


async def _greet(session: ClientSession, config: Config) -> None:
    """Agree on a protocol: the one without a handshake if the server knows it, else the handshake."""
    if config.protocol == "auto":
        try:
            await session.discover()
        except (MCPError, RuntimeError, ValidationError):
            pass
        else:
            return
    await session.initialize()


def _not_greeted(subject: str, error: BaseException, read: Any) -> Exception:
    fault = getattr(read, "fault", None)
    if fault is not None:
        return McpProtocolError(f"{subject} cannot be used: {fault}")
    if isinstance(error, MCPError) and error.code != types.CONNECTION_CLOSED:
        return McpRefusedError(f"{subject} refused the handshake: {error.message:.500} ({error.code})")
    if isinstance(error, (ValidationError, RuntimeError)):
        return McpProtocolError(f"{subject} greeted against the protocol: {str(error).splitlines()[0]:.300}")
    return McpServerGoneError(f"{subject} is not there: it ended, or closed the connection, before it greeted")
