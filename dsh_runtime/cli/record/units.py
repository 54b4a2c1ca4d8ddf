"""Times, ages and sizes, as people write and read them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Final

from dsh_runtime.cli.errors import CliError

_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_BYTES: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY: Final = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_age(text: str, option: str) -> int:
    """An age such as ``30d``, in milliseconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip().lower())
    if found is None:
        raise CliError(f"{option} takes an age such as 90s, 30m, 12h, 30d or 4w, not {text!r}")
    return int(float(found[1]) * _SECONDS[found[2]] * 1000)


def parse_since(text: str, now: int) -> int:
    """A moment, in milliseconds of UTC: an age, or a date or time of ISO 8601 (local time, where it names no zone)."""
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except ValueError:
        pass
    try:
        return now - parse_age(text, "--since")
    except CliError:
        wanted = "an age such as 30m or 7d, or a time such as 2026-01-31T12:00"
        raise CliError(f"--since takes {wanted}, not {text!r}") from None


def parse_size(text: str, option: str) -> int:
    """A size in bytes: ``500000``, ``1GB``, ``1GiB``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", text.strip().lower())
    if found is None or (found[3] and not found[2]):
        raise CliError(f"{option} takes a size such as 500000, 200MB, 1GB or 1GiB, not {text!r}")
    return int(float(found[1]) * (_BINARY if found[3] else _BYTES)[found[2]])


def now_ms() -> int:
    """This moment, in milliseconds of UTC."""
    return time.time_ns() // 1_000_000


def local_time(moment: int) -> str:
    """A moment in local time, to the second."""
    return datetime.fromtimestamp(moment / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def duration(ms: float | None) -> str:
    """A time that something took."""
    if ms is None:
        return "-"
    if ms < 100:
        return f"{ms:.2f} ms" if ms < 10 else f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 10_000 else f"{ms / 1000:.1f} s"


def size(count: int) -> str:
    """A size that people can read."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
