"""How many seconds a call gets."""

from __future__ import annotations

import fnmatch
import math
import re
from typing import Any

from attrs import Attribute, field, frozen


def _seconds(_config: object, _field: Attribute[Any], value: float | None) -> None:
    if value is not None and not 0 < value < math.inf:
        raise ValueError(f"a deadline is a positive, finite number of seconds, not {value!r}")


def _all_seconds(config: object, field: Attribute[Any], table: dict[str, float]) -> None:
    wrong = {glob: value for glob, value in table.items() if not 0 < value < math.inf}
    if wrong:
        raise ValueError(f"deadlines are positive, finite numbers of seconds, not {wrong!r}")


@frozen
class Config:
    """Deadlines beside those that tools declare.

    ``default`` is for tools without one. ``overrides`` leads from globs on the tool's name to seconds that count
    instead of whatever the tool says; the first glob that matches is used.
    """

    default: float | None = field(default=None, validator=_seconds)
    overrides: dict[str, float] = field(factory=dict, validator=_all_seconds)


@frozen
class Budgets:
    """A config made ready for look-up."""

    default: float | None
    overrides: tuple[tuple[re.Pattern[str], float], ...]

    def seconds(self, tool: str, declared: float | None) -> float | None:
        """The time that a call of ``tool`` gets, or ``None`` for no deadline."""
        for pattern, seconds in self.overrides:
            if pattern.match(tool):
                return seconds
        return declared if declared is not None else self.default


def budgets_of(config: Config) -> Budgets:
    """Compile the globs of a config."""
    overrides = tuple((re.compile(fnmatch.translate(glob)), seconds) for glob, seconds in config.overrides.items())
    return Budgets(config.default, overrides)
