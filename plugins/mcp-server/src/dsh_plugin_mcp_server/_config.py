"""What a host may say about its MCP server."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen, validators

MIB: Final = 1024 * 1024


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
