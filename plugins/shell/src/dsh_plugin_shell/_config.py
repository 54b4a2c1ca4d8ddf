"""What the plugin may be told."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Final

from attrs import Attribute, field, frozen

DEFAULT_SHELL: Final = ("/bin/sh", "-c")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _positive(_config: object, attribute: Attribute[Any], value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{attribute.name} is a positive, finite number, not {value!r}")


def _seconds(config: object, attribute: Attribute[Any], value: float | None) -> None:
    if value is not None:
        _positive(config, attribute, value)


def _not_negative(_config: object, attribute: Attribute[Any], value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"{attribute.name} is a finite number of seconds, 0 or more, not {value!r}")


def _names(_config: object, attribute: Attribute[Any], value: list[str]) -> None:
    wrong = [name for name in value if not _NAME.match(name)]
    if wrong:
        raise ValueError(f"{attribute.name} takes names of variables; these are none: {wrong!r}")


def _variables(config: object, attribute: Attribute[Any], value: dict[str, str]) -> None:
    _names(config, attribute, list(value))
    wrong = [name for name, text in value.items() if "\0" in text]
    if wrong:
        raise ValueError(f"{attribute.name} holds a NUL in {wrong!r}; no variable can")


def _texts(_config: object, attribute: Attribute[Any], value: list[str]) -> None:
    if any(not text or "\0" in text for text in value):
        raise ValueError(f"{attribute.name} is a program and its arguments, none empty or with a NUL, not {value!r}")


@frozen(kw_only=True)
class Config:
    """Where and how commands run.

    ``shell`` is what a command's text is appended to; an empty list means no shell: the tool then takes ``argv``.
    ``inherit`` names variables that are taken from the host, ``env`` sets others. ``keep_bytes`` is how much of the
    output is kept, half of it from the beginning and half from the end; a command that writes more than
    ``max_output_bytes`` is stopped. ``timeout`` is what the tool declares, for the plugin ``timeout`` to enforce;
    ``grace`` is how long a command may take to end when it is told to.
    """

    folder: Path
    shell: list[str] = field(factory=lambda: list(DEFAULT_SHELL), validator=_texts)
    inherit: list[str] = field(factory=list, validator=_names)
    env: dict[str, str] = field(factory=dict, validator=_variables)
    keep_bytes: int = field(default=32 * 1024, validator=_positive)
    max_output_bytes: int = field(default=1024**3, validator=_positive)
    timeout: float | None = field(default=120.0, validator=_seconds)
    grace: float = field(default=2.0, validator=_not_negative)
