"""What can go wrong between the host and a server."""

from __future__ import annotations

from dsh_hookspecs import HarnessError


class McpServerGoneError(HarnessError):
    """The server is not there, or has gone away during the call."""

    default_code = "MCP_SERVER_GONE"


class McpTimeoutError(HarnessError):
    """The server did not answer in time."""

    default_code = "MCP_TIMEOUT"


class McpProtocolError(HarnessError):
    """The server answered with something that the protocol does not allow."""

    default_code = "MCP_PROTOCOL"


class McpRefusedError(HarnessError):
    """The server refused the request with an error of the protocol."""

    default_code = "MCP_REFUSED"


class McpInputRequiredError(HarnessError):
    """The server wants something of a user that it cannot get through the host."""

    default_code = "MCP_INPUT_REQUIRED"
