"""Which headers a request may have. ``Host`` and ``Origin``: a page in somebody's browser must not reach the server."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from typing import Any, Final

_EVENTS: Final = frozenset({"*/*", "text/*", "text/event-stream"})
_JSON: Final = frozenset({"*/*", "application/*", "application/json"})
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen on."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_allowed(value: str | None, allowed: Collection[str]) -> bool:
    """Whether a ``Host`` names this server: loopback by its usual names, or what the config allows."""
    if value is None:
        return False
    name, port = _split(value)
    known = _LOOPBACK | {each.lower() for each in allowed}
    return name in known or (bool(port) and f"{name}:{port}" in known)


def origin_allowed(value: str | None, allowed: Collection[str]) -> bool:
    """Whether an ``Origin`` may be answered. Programs send none; pages of this machine or of the config's hosts may."""
    if value is None:
        return True
    scheme, separator, host = value.lower().partition("://")
    if value.lower() in {each.lower() for each in allowed}:
        return True
    return bool(separator) and scheme in ("http", "https") and _split(host)[0] in _LOOPBACK


def _split(value: str) -> tuple[str, str]:
    """Name and port of an authority."""
    value = value.lower()
    if value.startswith("["):
        name, _, rest = value.partition("]")
        return f"{name}]", rest.removeprefix(":")
    name, _, port = value.partition(":")
    return name, port


def negotiate(scope: Mapping[str, Any]) -> tuple[int, str] | None:
    """Why a request cannot be answered in a form that it takes, with a status; ``None`` if it can."""
    method = scope["method"]
    headers = {key.lower(): value.decode("latin-1").lower() for key, value in scope["headers"]}
    accepted = {part.partition(";")[0].strip() for part in headers.get(b"accept", "").split(",")}
    if method in ("GET", "POST") and not accepted & _EVENTS:
        return 406, "the client has to accept text/event-stream"
    if method == "POST" and not accepted & _JSON:
        return 406, "the client has to accept application/json"
    if method == "POST" and headers.get(b"content-type", "").partition(";")[0].strip() != "application/json":
        return 415, "the body has to be application/json"
    return None
