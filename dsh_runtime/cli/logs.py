"""Log records on stderr, one line each; ``-v`` adds more of them, and tracebacks."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator

from dsh_runtime.cli.text import one_line, visible

#: How the ids of this program's own calls begin: it tells their results itself.
OWN_CALLS = "cli-"
_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


class StderrLog(logging.Handler):
    """Writes records to stderr. While a host starts they are held: if it fails, its error says it all.

    What says how far the start has got comes at once.
    """

    def __init__(self, verbosity: int) -> None:
        super().__init__(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
        self._details = verbosity > 0
        self._held: list[logging.LogRecord] | None = None if self._details else []

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or hold it; what a result tells anyway is left to ``-v``."""
        if not self._details and str(getattr(record, "dsh_call", "")).startswith(OWN_CALLS):
            return
        if self._held is not None and not getattr(record, "dsh_tell_now", False):
            self._held.append(record)
        elif sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(self._text(record) + "\n")

    def tell_held(self, *, failures: bool = True) -> None:
        """Write what is held, with or without which plugins failed, and hold nothing from now on."""
        held, self._held = self._held, None
        for record in held or ():
            if failures or getattr(record, "dsh_failed", None) is None:
                self.emit(record)

    def forget_held(self) -> None:
        """Forget what is held, and hold nothing from now on."""
        self._held = None

    def _text(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        if self._details:
            return f"{level}: {record.name}: {visible(self.format(record))}"
        message = one_line(record.getMessage())
        error = record.exc_info[1] if record.exc_info else None
        said = error is None or one_line(str(error)) in message
        return f"{level}: {message}" + ("" if said else f" ({one_line(f'{type(error).__name__}: {error}')})")


@contextlib.contextmanager
def logging_to_stderr(verbosity: int) -> Iterator[StderrLog]:
    """Send every record to stderr meanwhile."""
    root = logging.getLogger()
    handler = StderrLog(verbosity)
    level = root.level
    root.addHandler(handler)
    root.setLevel(handler.level)
    try:
        yield handler
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
