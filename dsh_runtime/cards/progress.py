"""How far a call has come, on one line."""

from __future__ import annotations

import math
from typing import Final

from dsh_hookspecs import ToolProgress

from dsh_runtime.cards.lines import lines_of
from dsh_runtime.cards.unseen import visible
from dsh_runtime.cards.width import columns_of, head_within

_FULL: Final = "█"
_PARTS: Final = " ▏▎▍▌▋▊▉"
_BAR_COLUMNS: Final = 24
_MIN_BAR_COLUMNS: Final = 6
_GAP: Final = "  "
_MAX_BITS: Final = 64


def progress_line(progress: ToolProgress, *, width: int, unicode: bool = True) -> str:
    """A bar with its share where the total is known, the count, and the last line of the message.

    The line takes less than ``width`` columns, so that no terminal goes on to the next one.
    """
    share = _share(progress)
    bar = _bar(share, min(_BAR_COLUMNS, width // 3), unicode) if share is not None else ""
    count = f"{share:.0%}" if share is not None else _number(progress.done)
    line = f"{bar} {count:>4}" if bar else count
    message = visible(_last_line(progress.message or ""))
    return _within(f"{line}{_GAP}{message}" if message else line, width - 1)


def _share(progress: ToolProgress) -> float | None:
    """The part that is done, from 0 to 1; ``None`` where the numbers do not tell."""
    done, total = progress.done, progress.total
    try:
        share = done / total if total is not None and total > 0 and math.isfinite(total) else math.nan
    except (OverflowError, TypeError):
        return None
    return min(1.0, max(0.0, share)) if math.isfinite(share) else None


def _bar(share: float, columns: int, unicode: bool) -> str:
    if columns < _MIN_BAR_COLUMNS:
        return ""
    if not unicode:
        return f"[{'#' * round(share * (columns - 2)):-<{columns - 2}}]"
    eighths = int(share * columns * 8)
    full, part = divmod(eighths, 8)
    return (_FULL * full + (_PARTS[part] if part else "")).ljust(columns, "░")


def _number(value: object) -> str:
    if isinstance(value, int) and value.bit_length() <= _MAX_BITS:
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else "…"


def _last_line(message: str) -> str:
    return next((line.strip() for line in reversed(list(lines_of(message[-2_000:]))) if line.strip()), "")


def _within(line: str, columns: int) -> str:
    if columns_of(line) <= columns:
        return line
    return f"{head_within(line, max(0, columns - 1))}…" if columns > 0 else ""
