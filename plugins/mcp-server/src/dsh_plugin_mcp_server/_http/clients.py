"""One scope for each token: what its owner may see and do, whatever sessions it opens."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import trio
from attrs import define, field
from dsh_hookspecs import Context, HarnessError, Scope

from dsh_plugin_mcp_server._config import ClientConfig
from dsh_plugin_mcp_server._http.tokens import Token
from dsh_plugin_mcp_server._presentation import Presentation, present

#: The scope of everybody, on a server without tokens.
ANYBODY = Token("anybody", frozenset({"list", "call"}), "")


class ClientConfigError(HarnessError):
    """What the config says about a token cannot be applied."""

    default_code = "INVALID_CLIENT"


@define(eq=False)
class Client:
    """The owner of a token while the server runs: a scope, and how much of the server it uses."""

    token: Token
    scope: Scope
    sessions: int = 0
    ended: trio.Event = field(factory=trio.Event)

    @property
    def owner(self) -> str | None:
        """The name of the token; none on a server without tokens."""
        return None if self.token is ANYBODY else self.token.name


@define
class Clients:
    """The owners of tokens that have been seen, by the hash of the token."""

    _ctx: Context
    _configs: dict[str, ClientConfig]
    _presentation: Presentation | None = None
    _found: dict[str, Client] = field(factory=dict, init=False)

    def of(self, token: Token) -> Client:
        """The client of a token; its scope is made on first use. Raises :class:`ClientConfigError`."""
        client = self._found.get(token.hash)
        if client is not None and client.token == token:
            return client
        if client is not None:
            self.end(client)
        scope = self._ctx.scope()
        try:
            _confine(scope.ctx, token, self._configs.get(token.name, ClientConfig()), self._presentation)
        except HarnessError as error:
            scope.dispose()
            raise ClientConfigError(f"the config of the client {token.name!r} cannot be applied: {error}") from error
        self._found[token.hash] = found = Client(token, scope)
        return found

    def end_revoked(self, holds: Callable[[Token], bool]) -> None:
        """End the clients whose tokens do not count any more."""
        for client in [client for client in self._found.values() if not holds(client.token)]:
            self.end(client)

    def end(self, client: Client) -> None:
        """End a client with all its sessions."""
        if self._found.get(client.token.hash) is client:
            del self._found[client.token.hash]
        client.ended.set()
        client.scope.dispose()


def check_configs(ctx: Context, configs: dict[str, ClientConfig], presentation: Presentation | None = None) -> None:
    """Raise :class:`ClientConfigError` now for what would be wrong when a client comes."""
    clients = Clients(ctx, configs, presentation)
    for name in (*configs, ANYBODY.name):
        clients.end(clients.of(Token(name, frozenset(), name)))


def _confine(ctx: Any, token: Token, config: ClientConfig, presentation: Presentation | None) -> None:
    if config.allow is not None or config.deny:
        ctx.tools.restrict(allow=config.allow, deny=config.deny or None)
    present(ctx, config.presentation or presentation)
    for path in config.guards:
        ctx.tools.guard(_imported(path))
    if "call" not in token.rights:
        ctx.tools.guard(_no_right(token))


def _no_right(token: Token) -> Callable[..., str]:
    def guard(execution: object) -> str:
        return f"the token {token.name!r} has no right to call"

    return guard


def _imported(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ClientConfigError(f"the guard {path!r} is not found ({error}); write 'module:function'") from error
    if not callable(found):
        raise ClientConfigError(f"the guard {path!r} is no function")
    return found  # type: ignore[no-any-return]
