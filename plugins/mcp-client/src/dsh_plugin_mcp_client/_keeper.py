"""Keeps one server: connects, offers its tools while it is there, takes them away, and connects again."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

import trio
from dsh_hookspecs import Context, HarnessError

from dsh_plugin_mcp_client._config import Config
from dsh_plugin_mcp_client._connection import Connection, connect
from dsh_plugin_mcp_client._fingerprints import Fingerprints
from dsh_plugin_mcp_client._tools import Caller, RemoteTool, UnusableToolError, read_tool

_FIRST_BACKOFF: Final = 0.2
#: A connection that has held for so many seconds was a good one: the next attempt comes soon.
_GOOD: Final = 10.0
#: Changes in quick succession are one.
_QUIET: Final = 0.05
#: How often the file of fingerprints is looked at while a tool is withheld.
_LOOK_AGAIN: Final = 1.0


class Keeper:
    """One server and its tools in the host."""

    def __init__(self, ctx: Context, config: Config, fingerprints: Fingerprints, server_id: str) -> None:
        self._ctx = ctx
        self._config = config
        self._prints = fingerprints
        self._logger = logging.getLogger(f"dsh.plugin.{server_id}")
        self.subject = f"MCP server {server_id!r}"
        self._connection: Connection | None = None
        self._offered: dict[str, tuple[str, Callable[[], None]]] = {}
        self._said: dict[str, str] = {}
        self.settled = trio.Event()
        self.error: Exception | None = None

    async def run(self) -> None:
        """Keep the server for as long as the plugin is loaded. The first attempt's outcome is ``settled``."""
        backoff = _FIRST_BACKOFF
        while True:
            began = trio.current_time()
            error = await self._once()
            if not self.settled.is_set():
                self.error = error
                self.settled.set()
            if trio.current_time() - began > _GOOD:
                backoff = _FIRST_BACKOFF
            self._logger.warning("%s; connecting again in %.1f s", error, backoff)
            await trio.sleep(backoff * random.uniform(0.8, 1.2))
            backoff = min(backoff * 2, self._config.max_backoff)

    async def _once(self) -> Exception:
        """Connect once and stay for as long as the server does; why it ended."""
        try:
            async with connect(self._config, self.subject, self._logger) as connection:
                self._connection = connection
                await self._offer(connection)
                self.settled.set()
                await self._stay(connection)
                return HarnessError(f"{self.subject} is lost: {connection.why}")
        except HarnessError as error:
            return error
        except BaseExceptionGroup as group:
            # A transport's nursery wraps what ended it.
            ordinary, rest = group.split(Exception)
            if rest is not None or ordinary is None:
                raise
            leaf = _leaf(ordinary)
            if isinstance(leaf, HarnessError):
                return leaf
            return HarnessError(f"{self.subject} is lost: {type(leaf).__name__}: {leaf}")
        except OSError as error:
            return HarnessError(f"{self.subject} is lost: {error}")
        finally:
            self._connection = None
            self._withdraw(set())

    async def _stay(self, connection: Connection) -> None:
        """Follow the server's changes until it is lost."""
        while not connection.lost.is_set():
            async with trio.open_nursery() as nursery:
                for wait in (connection.lost.wait, connection.changed.wait, self._until_accepted):
                    nursery.start_soon(_then_cancel, wait, nursery.cancel_scope)
            if not connection.lost.is_set():
                await trio.sleep(_QUIET)
                connection.changed = trio.Event()
                await self._offer(connection)

    async def _until_accepted(self) -> None:
        """Wait until somebody has changed the file of fingerprints, if a tool is withheld."""
        if not self._prints.withheld:
            await trio.sleep_forever()
        while not await trio.to_thread.run_sync(self._prints.touched):  # noqa: ASYNC110 - another process does it
            await trio.sleep(_LOOK_AGAIN)

    async def _offer(self, connection: Connection) -> None:
        """Offer what the server lists now, and nothing else of it."""
        entries = await connection.tools()
        tools = await trio.to_thread.run_sync(self._read, entries)
        entries_read: list[Mapping[str, Any]] = [tool.entry for tool in tools.values()]
        admitted = await trio.to_thread.run_sync(self._prints.admit, entries_read)
        keep = {name for name in tools if name in admitted and self._same(name, admitted[name])}
        self._withdraw(keep)
        for name, tool in tools.items():
            if name in keep:
                continue
            if name in admitted:
                self._register(tool, admitted[name])
            else:
                self._say(
                    name,
                    "has changed since it was accepted and is withheld; see 'dsh-run gateway status', "
                    f"accept it with 'dsh-run gateway accept'{self._prints.option}",
                )

    def _read(self, entries: list[Any]) -> dict[str, RemoteTool]:
        tools: dict[str, RemoteTool] = {}
        for entry in entries:
            name = str(entry.get("name"))[:100] if isinstance(entry, dict) else "?"
            try:
                tool = read_tool(entry, self._config)
                if tool.name in tools:
                    raise UnusableToolError("is listed twice")
            except UnusableToolError as problem:
                self._say(name, f"{problem}; it is not offered")
            else:
                tools[tool.name] = tool
        return tools

    def _same(self, name: str, digest: str) -> bool:
        return name in self._offered and self._offered[name][0] == digest

    def _register(self, tool: RemoteTool, digest: str) -> None:
        caller = Caller(tool, self.subject, lambda: self._connection, self._config, self._logger)
        try:
            undo = self._ctx.tools.register(caller.definition())
        except (HarnessError, ValueError, TypeError) as error:
            self._refused(tool.name, error)
            return
        self._said.pop(tool.name, None)
        self._offered[tool.name] = (digest, undo)

    def _refused(self, name: str, error: Exception) -> None:
        """The host does not take the tool: at the start that is an error of the config, later it is told."""
        remedy = "; give this server a 'prefix'" if "already" in str(error) else ""
        if not self.settled.is_set():
            raise HarnessError(f"{self.subject}: {error}{remedy}") from error
        self._say(name, f"is not offered: {error}{remedy}")

    def _withdraw(self, keep: set[str]) -> None:
        for name in [name for name in self._offered if name not in keep]:
            self._offered.pop(name)[1]()

    def _say(self, name: str, what: str) -> None:
        """Tell once about a tool."""
        if self._said.get(name) != what:
            self._said[name] = what
            self._logger.warning("tool %r of %s %s", name, self.subject, what)


async def _then_cancel(wait: Callable[[], Any], scope: trio.CancelScope) -> None:
    await wait()
    scope.cancel()


def _leaf(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
