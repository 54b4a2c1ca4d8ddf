"""The settings of one server."""

from __future__ import annotations

import math
from typing import Any, Literal

from attrs import Attribute, field, frozen


def _positive(instance: object, attribute: Attribute[Any], value: Any) -> None:
    if value is not None and not (0 < value < math.inf):
        raise ValueError(f"{attribute.name} is {value}; expected a finite number above 0")


@frozen
class Config:
    """Where a server is, and how far it is trusted. Times are in seconds.

    Either ``command`` (the program and its arguments) or ``url`` (of a streamable HTTP endpoint). The environment of a
    program is ``env`` and nothing else.
    """

    command: tuple[str, ...] | None = None
    url: str | None = None
    headers: dict[str, str] = field(factory=dict)
    env: dict[str, str] = field(factory=dict)
    cwd: str | None = None
    prefix: str = ""
    protocol: Literal["auto", "legacy"] = "auto"
    validation: Literal["strict", "warn", "off"] = "strict"
    trust_annotations: bool = False
    start: Literal["wait", "background"] = "wait"
    fingerprints: str | None = None
    connect_timeout: float = field(default=30.0, validator=_positive)
    call_timeout: float | None = field(default=600.0, validator=_positive)
    stop_timeout: float = field(default=2.0, validator=_positive)
    max_backoff: float = field(default=30.0, validator=_positive)
    max_tools: int = field(default=1000, validator=_positive)
    max_schema_bytes: int = field(default=1_048_576, validator=_positive)
    max_message_bytes: int = field(default=16_777_216, validator=_positive)

    def __attrs_post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server has either a 'command' or a 'url'; give exactly one of them")
        if self.command is not None and not self.command:
            raise ValueError("'command' is empty; give the program and its arguments")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"'url' is {self.url!r}; expected http:// or https://")
        if self.headers and self.url is None:
            raise ValueError("'headers' go with a 'url'; give a program its secrets in 'env'")
