"""Python log records: message, arguments, traceback, stack and extra fields are masked before a handler writes them."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from dsh_plugin_redact._mask import mask
from dsh_plugin_redact._redactor import Redactor


def mask_handlers(redactor: Redactor) -> Callable[[], None]:
    """Put a masking filter on every handler that there is; give back the undo."""
    masking = MaskingFilter(redactor)
    handlers = _handlers()
    for handler in handlers:
        handler.addFilter(masking)

    def undo() -> None:
        for handler in handlers:
            handler.removeFilter(masking)

    return undo


def _handlers() -> set[logging.Handler]:
    """Those of all loggers, and the one that writes where a program has set up none."""
    loggers = (logging.getLogger(), *logging.Logger.manager.loggerDict.values())
    handlers = {handler for logger in loggers if isinstance(logger, logging.Logger) for handler in logger.handlers}
    return handlers if logging.lastResort is None else {*handlers, logging.lastResort}


class MaskingFilter(logging.Filter):
    """Masks each record in place. One that cannot be masked loses all that it says."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask a record; it is always written."""
        try:
            self._mask(record)
        except Exception:
            record.msg, record.args = mask("log-record"), ()
            record.exc_info = record.exc_text = record.stack_info = None
        return True

    def _mask(self, record: logging.LogRecord) -> None:
        message = _message_of(record)
        masked = self._redactor.text(message)
        if masked is not message or record.args is None:
            record.msg, record.args = masked, ()
        self._mask_error(record)
        if record.stack_info:
            record.stack_info = self._redactor.text(record.stack_info)
        for name in record.__dict__.keys() - _standard_fields():
            record.__dict__[name] = self._extra(name, record.__dict__[name])

    def _mask_error(self, record: logging.LogRecord) -> None:
        """Mask the exception; where it holds a secret, another one of the same name takes its place."""
        if record.exc_text:
            record.exc_text = self._redactor.text(record.exc_text)
        if not record.exc_info or record.exc_info[1] is None:
            return
        error = record.exc_info[1]
        trace = "".join(traceback.format_exception(error)).rstrip("\n")
        masked = self._redactor.text(trace)
        if masked is trace:
            return
        kind = type(type(error).__name__, (Exception,), {"__module__": type(error).__module__})
        record.exc_info = (kind, kind(self._redactor.text(str(error))), None)
        record.exc_text = masked

    def _extra(self, name: str, value: object) -> object:
        if not isinstance(value, (str, int, float, Mapping, Sequence)):
            return value
        masked = self._redactor.value({name: value})
        return next(iter(masked.values())) if isinstance(masked, Mapping) else masked


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # Arguments that do not fit: the handler would complain and quote them.
        record.msg, record.args = f"{record.msg} {record.args!r}", None
        return str(record.msg)


@cache
def _standard_fields() -> frozenset[str]:
    return frozenset((*logging.makeLogRecord({}).__dict__, "message", "asctime"))
