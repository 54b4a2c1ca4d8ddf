"""What a person has typed, and what it means."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Key: TypeAlias = Literal["yes", "no", "all", "interrupt"]

INTERRUPT: Final = b"\x03"
_MEANINGS: Final[dict[bytes, Key]] = {b"y": "yes", b"yes": "yes", b"a": "all", b"all": "all"}


def read_key(typed: bytes) -> Key:
    """The meaning of what was typed at once. What is unclear means no: Enter, a word, a key of several bytes."""
    if INTERRUPT in typed:
        return "interrupt"
    return _MEANINGS.get(typed.strip().lower(), "no")
