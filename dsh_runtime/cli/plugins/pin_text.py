"""Edit the table ``[pins]`` of a config's text: a line for each pin, everything else as it was, comments too.

The outline is that of the scanner which locates config values; what comes out is parsed and compared before anybody
sees it, so an edit that would change anything else is refused.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from dsh_runtime.loader.errors import quote_key
from dsh_runtime.loader.pin import Pin
from dsh_runtime.loader.positions import scan

_HEADER: Final = re.compile(r"[ \t]*\[[ \t]*pins[ \t]*\][ \t]*(#.*)?\r?")
_PIN: Final = re.compile(r"(?P<head>[ \t]*[^\s={}#]+[ \t]*=[ \t]*)\{[^{}#]*\}(?P<tail>[ \t]*(#.*)?\r?)")


class CannotEditError(Exception):
    """The pins stand there in a form that is not edited; the message says what to do."""


def edit_pins(text: str, pins: Mapping[str, Pin]) -> str:
    """The text of a config with these pins and no others."""
    before = tomllib.loads(text)
    end = "\r" if "\r\n" in text else ""
    new = {row_id: pin_line(row_id, pin) + end for row_id, pin in pins.items()}
    lines = text.removesuffix("\n").split("\n") if text else []
    if "pins" in before:
        _replace(lines, pins, new, _places(text, before["pins"]))
    else:
        gap = [end] if lines and lines[-1].strip() else []
        lines += [*gap, f"[pins]{end}", *new.values()]
    edited = "\n".join([*lines, ""])
    _check(before, edited, pins)
    return edited


def pin_line(row_id: str, pin: Pin) -> str:
    """A pin as it stands in a config."""
    return f"{quote_key(row_id)} = {_table(pin)}"


def _places(text: str, pins: object) -> dict[str | None, int]:
    """The index of the line of the header (``None``) and of each pin."""
    lines = scan(text)
    if not isinstance(pins, dict) or ("pins",) not in lines:
        raise CannotEditError("'pins' is no table; write it as [pins]")
    places: dict[str | None, int] = {None: lines["pins",] - 1}
    return places | {row_id: lines["pins", row_id] - 1 for row_id in pins}


def _replace(
    lines: list[str], pins: Mapping[str, Pin], new: Mapping[str, str], places: Mapping[str | None, int]
) -> None:
    """Bring the lines of a table up to date: each pin in its place, new ones behind the last, stale ones gone."""
    if _HEADER.fullmatch(lines[places[None]]) is None:
        raise CannotEditError("the pins stand in no table of their own; write them below a line [pins]")
    end = max(places.values())
    for row_id, place in places.items():
        if row_id is not None:
            lines[place] = _replaced(row_id, lines[place], pins.get(row_id))
    lines[end + 1 : end + 1] = [line for row_id, line in new.items() if row_id not in places]
    stale = {place for row_id, place in places.items() if row_id is not None and row_id not in pins}
    lines[:] = [line for place, line in enumerate(lines) if place not in stale]


def _replaced(row_id: str, line: str, pin: Pin | None) -> str:
    found = _PIN.fullmatch(line)
    if found is None:
        raise CannotEditError(f"pins.{row_id} does not stand on one line; write {row_id} = {{ … }}, or remove it")
    return line if pin is None else found["head"] + _table(pin) + found["tail"]


def _table(pin: Pin) -> str:
    pairs = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in _values(pin).items())
    return "{ " + ", ".join(pairs) + " }"


def _values(pin: Pin) -> dict[str, str]:
    values = {"wheel": pin.wheel, "version": pin.version, "digest": pin.digest}
    return {key: value for key, value in values.items() if value is not None}


def _check(before: dict[str, Any], edited: str, pins: Mapping[str, Pin]) -> None:
    """Refuse an edit that did anything but set the pins."""
    wanted = {row_id: _values(pin) for row_id, pin in pins.items()}
    try:
        after = tomllib.loads(edited)
    except tomllib.TOMLDecodeError:
        after = {}
    if after.pop("pins", {}) != wanted or after != {key: value for key, value in before.items() if key != "pins"}:
        raise CannotEditError("the table [pins] is written in a form that is not edited; remove it, and run this again")
