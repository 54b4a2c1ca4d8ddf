"""How much one call may read, write and return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import Attribute, field, frozen

#: Raises when the call is to stop; asked between blocks, files and retries.
Poll: TypeAlias = Callable[[], None]


def never() -> None:
    """The poll of a call that nobody stops."""


def positive(instance: object, attribute: Attribute[Any], value: object) -> None:
    """Refuse anything but a number above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"{attribute.name} must be a number above 0, not {value!r}")


@frozen
class Limits:
    """Bounds of one call; each is a number above 0.

    ``max_read_bytes`` bounds the window that one read returns, ``max_scan_bytes`` how far a read counts the lines
    behind its window, ``max_write_bytes`` a file that is written or edited, ``max_file_bytes`` a file that is searched,
    ``max_results`` the paths or matching lines that one search returns, ``search_seconds`` the time that it takes.
    """

    max_read_bytes: int = field(default=256 * 1024, validator=positive)
    max_read_lines: int = field(default=2_000, validator=positive)
    max_line_chars: int = field(default=2_000, validator=positive)
    max_scan_bytes: int = field(default=256 * 1024 * 1024, validator=positive)
    max_write_bytes: int = field(default=4 * 1024 * 1024, validator=positive)
    max_file_bytes: int = field(default=16 * 1024 * 1024, validator=positive)
    max_results: int = field(default=500, validator=positive)
    max_match_chars: int = field(default=400, validator=positive)
    max_diff_chars: int = field(default=64 * 1024, validator=positive)
    search_seconds: float = field(default=20.0, validator=positive)
