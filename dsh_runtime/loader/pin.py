"""Pins: which code a config allows its plugins to be. The values; :mod:`.pinned` compares them with what is there.

A config with a table ``[pins]`` runs pinned plugins only. A pin stands under the id of its row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import frozen

from .errors import ConfigProblem, KeyPath, PluginLoadError, did_you_mean, quoted
from .nodes import Leaf, Node, Table

KEYS: Final = ("digest", "version", "wheel")
_DIGEST: Final = r"sha256:[0-9a-f]{64}"
_REMEDY: Final = "remove it, and let 'dsh-run plugins pin' write it"


class PinMismatchError(PluginLoadError):
    """A plugin is not what its config has pinned, or the config pins it not at all."""


@frozen(kw_only=True)
class Pin:
    """What a plugin's code has to be: its digest, and for people the wheel and version that had it."""

    digest: str
    wheel: str | None = None
    version: str | None = None


def check_pins(node: Node, valid_id: re.Pattern[str]) -> Iterator[ConfigProblem]:
    """Yield everything that is wrong with the table ``pins`` of one file."""
    if not isinstance(node, Table):
        yield ConfigProblem(("pins",), f"'pins' is no table; {_REMEDY}", node.where)
        return
    for row_id, pin in node.entries.items():
        path = ("pins", row_id)
        if valid_id.fullmatch(row_id) is None:
            yield ConfigProblem(path, f"no plugin can have the id {quoted(row_id)}; remove the pin", pin.where)
        elif isinstance(pin, Table):
            yield from _check_pin(pin, path)
        else:
            yield ConfigProblem(path, f"a pin is a table; {_REMEDY}", pin.where)


def _check_pin(pin: Table, path: KeyPath) -> Iterator[ConfigProblem]:
    for key, node in pin.entries.items():
        if key not in KEYS:
            yield ConfigProblem((*path, key), f"a pin has no key {quoted(key)}; {did_you_mean(key, KEYS)}", node.where)
        elif _text_of(node) is None:
            message = f"'{key}' of a pin must be a text that stands there in full; {_REMEDY}"
            yield ConfigProblem((*path, key), message, node.where)
    digest = pin.entries.get("digest")
    if digest is None or re.fullmatch(_DIGEST, _text_of(digest) or "sha256:" + "0" * 64) is None:
        message = f"'digest' of a pin must be 'sha256:' and 64 hexadecimal digits; {_REMEDY}"
        yield ConfigProblem((*path, "digest"), message, (digest or pin).where)


def build_pins(node: Node) -> Mapping[str, Pin]:
    """The pins of a checked table."""
    assert isinstance(node, Table)
    return {row_id: _build_pin(pin) for row_id, pin in node.entries.items() if isinstance(pin, Table)}


def _build_pin(pin: Table) -> Pin:
    values = {key: text for key, entry in pin.entries.items() if (text := _text_of(entry)) is not None}
    return Pin(**values)


def _text_of(node: Node) -> str | None:
    """The text of a node that stands in the file itself."""
    return node.value if isinstance(node, Leaf) and isinstance(node.value, str) and not node.secret else None
