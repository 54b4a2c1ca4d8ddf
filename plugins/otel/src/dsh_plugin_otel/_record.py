"""What of a call's data is put on record: nothing unless the config says so, and then masked and bounded."""

from __future__ import annotations

import json
from typing import Any, Final, Protocol

from attrs import frozen
from dsh_hookspecs import JsonValue, ToolErrorInfo, ToolExecutionFailure, ToolExecutionResult
from opentelemetry.trace import Span, Status, StatusCode

from dsh_plugin_otel import _names as names

_UNMASKED: Final = "[not recorded: no plugin provides the service 'redact']"
_CUT: Final = "…"


class Redactor(Protocol):
    """The service ``redact``."""

    def text(self, text: str, /) -> str: ...
    def value(self, value: JsonValue, /) -> JsonValue: ...


@frozen
class Recorder:
    """Puts arguments, content and errors on spans."""

    redactor: Redactor | None
    arguments: bool
    content: bool
    limit: int

    def name(self, text: str) -> str:
        """A name or an id, as it may be told: whoever calls may have put anything there."""
        return text if self.redactor is None else self.redactor.text(text)

    def call(self, span: Span, arguments: JsonValue) -> None:
        """Record a call's arguments, where they are wanted."""
        if self.arguments and span.is_recording():
            span.set_attribute(names.CALL_ARGUMENTS, self._json(arguments))

    def result(self, span: Span, result: ToolExecutionResult) -> None:
        """Record a call's result: the status, and the content where it is wanted."""
        if not span.is_recording():
            return
        if self.content:
            span.set_attribute(names.CALL_RESULT, self._json(result.content))
        if isinstance(result, ToolExecutionFailure):
            self.failure(span, result)

    def failure(self, span: Span, result: ToolExecutionFailure) -> None:
        """Record that a call, or one of its stages, has failed."""
        code = error_type(result)
        span.set_attribute(names.ERROR_TYPE, code)
        if result.error.info is not None and result.error.info.plugin is not None:
            span.set_attribute(names.ERROR_PLUGIN, result.error.info.plugin)
        # A message quotes what the tool was given, so it counts as content.
        span.set_status(Status(StatusCode.ERROR, self._text(result.error.message) if self.content else code))

    def _json(self, value: Any) -> str:
        if self.redactor is None:
            return _UNMASKED
        return self._bounded(json.dumps(self.redactor.value(value), ensure_ascii=False))

    def _text(self, text: str) -> str:
        return _UNMASKED if self.redactor is None else self._bounded(self.redactor.text(text))

    def _bounded(self, text: str) -> str:
        return text if len(text) <= self.limit else text[: self.limit - len(_CUT)] + _CUT


def error_type(result: ToolExecutionFailure) -> str:
    """The stable code of a failure, or the class of its error."""
    info = result.error.info or ToolErrorInfo("Error")
    return info.code or info.name
