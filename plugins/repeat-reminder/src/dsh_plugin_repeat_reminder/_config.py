"""The plugin's part of the config file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import Attribute, field, frozen

_ADVICE: Final = (
    "The answer is unlikely to change. Use the results that you already have, change the arguments, "
    "or say what keeps you from going on."
)


def _growing(_config: object, _field: Attribute[Any], counts: Sequence[int]) -> None:
    if not counts or counts[0] < 2 or list(counts) != sorted(set(counts)):
        raise ValueError(f"'counts' are whole numbers from 2 on that grow, not {list(counts)}; write [3, 5, 8], say")


def _some_text(_config: object, _field: Attribute[Any], text: str) -> None:
    if not text.strip():
        raise ValueError("'advice' is empty; leave it out for the text that comes with the plugin")


@frozen
class Config:
    """At which counts a repeated call is remarked on, with which advice, and which tools may repeat (globs)."""

    counts: tuple[int, ...] = field(default=(3, 5, 8), validator=_growing)
    advice: str = field(default=_ADVICE, validator=_some_text)
    ignore: tuple[str, ...] = ()
