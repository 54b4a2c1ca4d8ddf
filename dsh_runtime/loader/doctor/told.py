"""Which plugins have left which threads behind, as the watchdog of a host tells it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from dsh_runtime.loader.watchdog.strays import LEFT


class _Listening(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.owners: dict[threading.Thread, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep whose thread it is."""
        told = getattr(record, LEFT, None)
        if told is not None:
            plugin, thread = told
            self.owners[thread] = plugin


@contextlib.contextmanager
def told_threads() -> Iterator[dict[threading.Thread, str]]:
    """The threads that are told of meanwhile, with their plugins."""
    log, listening = logging.getLogger("dsh.host"), _Listening()
    log.addHandler(listening)
    try:
        yield listening.owners
    finally:
        log.removeHandler(listening)
