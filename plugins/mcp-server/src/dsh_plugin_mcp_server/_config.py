"""What a host may say about its MCP server."""

from __future__ import annotations

from typing import Final, Literal

from attrs import field, frozen, validators

MIB: Final = 1024 * 1024


@frozen
class ClientConfig:
    """What the owner of a token sees and may do, beside what the host allows everybody."""

    #: The only tools of the host's that the client sees; ``None``: all.
    allow: tuple[str, ...] | None = None
    #: Tools of the host's that the client does not see.
    deny: tuple[str, ...] = ()
    #: Guards for the client's calls, each ``module:function``.
    guards: tuple[str, ...] = ()
    #: How tools are presented to the client; ``None``: as to others.
    presentation: Literal["native", "code", "both"] | None = None


@frozen
class HttpConfig:
    """Where the server listens, and whom it lets in. Times are in seconds."""

    #: The address to listen on; without tokens only loopback.
    host: str = "127.0.0.1"
    port: int = field(default=8808, validator=[validators.ge(0), validators.le(65535)])
    #: The path of the endpoint.
    path: str = field(default="/mcp", validator=validators.matches_re(r"/[A-Za-z0-9._~/-]*"))
    #: The file of tokens; ``None``: everybody who reaches the server.
    tokens: str | None = None
    #: Names, beside those of loopback, under which the server is reached.
    allowed_hosts: tuple[str, ...] = ()
    #: Origins, beside those of loopback, whose pages may call.
    allowed_origins: tuple[str, ...] = ()
    #: What is said about single tokens, by their names.
    clients: dict[str, ClientConfig] = field(factory=dict)
    #: A PEM file with the certificate, and one with its key: then the server speaks HTTPS.
    certificate: str | None = None
    key: str | None = None
    #: The body of a request has to be there within so many seconds.
    body_timeout: float = field(default=10.0, validator=validators.gt(0))
    #: So many sessions are open at once; no more are opened.
    max_sessions: int = field(default=1000, validator=validators.ge(1))
    #: So many of them by one token.
    max_sessions_per_client: int = field(default=100, validator=validators.ge(1))
    #: A session without a request ends after so many seconds.
    session_timeout: float = field(default=1800.0, validator=validators.gt(0))
    #: So many requests are served at once; no more are taken.
    max_requests: int = field(default=1024, validator=validators.ge(1))
    #: So long what runs may take to end when the server stops.
    graceful_timeout: float = field(default=10.0, validator=validators.ge(0))


@frozen
class Config:
    """Who the server says it is, and how much it takes from a client and gives to it."""

    #: The name that clients see.
    name: str = field(default="dsh-runtime", validator=validators.min_len(1))
    #: The version that clients see; ``None``: this plugin's own.
    version: str | None = None
    #: How to use the tools, for the client's model.
    instructions: str | None = None
    #: A longer message from the client is refused unread.
    max_message_bytes: int = field(default=4 * MIB, validator=validators.ge(1024))
    #: A result that is longer as JSON becomes an error.
    max_result_bytes: int = field(default=4 * MIB, validator=validators.ge(1024))
    #: A result nested deeper becomes an error. The MCP SDK for Python reads messages of up to about 195 levels.
    max_result_depth: int = field(default=100, validator=[validators.ge(1), validators.le(512)])
    #: So many calls of one client run at once; the next ones wait.
    max_concurrent_calls: int = field(default=32, validator=validators.ge(1))
    #: While so many requests of one client are unanswered, nothing more is read from it.
    max_pending_requests: int = field(default=4096, validator=validators.ge(1))
    #: Whether a client that can ask its user is asked to, when a call has to be approved.
    elicitation: bool = True
    #: How tools are presented to clients; ``None``: as the host says.
    presentation: Literal["native", "code", "both"] | None = None
    #: The HTTP server, where it is used.
    http: HttpConfig = field(factory=HttpConfig)
