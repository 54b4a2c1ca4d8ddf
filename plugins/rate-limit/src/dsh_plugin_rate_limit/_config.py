"""The plugin's part of the config file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from attrs import Attribute, field, frozen
from attrs.validators import ge, in_, optional

Per: TypeAlias = Literal["agent", "host"]


def _some_glob(_rule: object, _field: Attribute[Any], globs: Sequence[str]) -> None:
    if not globs:
        raise ValueError("there is no glob here, so nothing would be limited; write ['*'] for every tool")


def _seconds(_rule: object, _field: Attribute[Any], value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"'seconds' is a positive, finite number of seconds, not {value!r}")


@frozen
class RuleConfig:
    """``calls`` in ``seconds`` for each tool that one of ``tools`` (globs) fits, for each agent or host wide.

    ``burst`` is how many may come at once, as many as ``calls`` unless said otherwise. With ``together`` the tools
    share one count.
    """

    tools: tuple[str, ...] = field(validator=_some_glob)
    calls: int = field(validator=ge(1))
    seconds: float = field(validator=_seconds)
    burst: int | None = field(default=None, validator=optional(ge(1)))
    per: Per = field(default="agent", validator=in_(("agent", "host")))
    together: bool = False


@frozen
class Config:
    """Rules, all of which a call has to keep, and how many counts each may hold at a time."""

    rules: tuple[RuleConfig, ...] = ()
    max_counters: int = field(default=10_000, validator=ge(1))
