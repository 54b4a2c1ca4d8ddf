"""The spans of the calls that are under way: one a call, with a child for each stage.

A call's span is opened by the first event that tells of the call and closed by ``tools/result``, which the host emits
exactly once for every call that entered. A stage's span lasts as long as the stage's listeners.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from weakref import WeakKeyDictionary

from attrs import frozen
from dsh_hookspecs import ExecutionToken, ToolExecution, ToolExecutionResult
from opentelemetry.context import Context
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
    use_span,
)

from dsh_plugin_otel import _names as names
from dsh_plugin_otel._record import Recorder

_LONGEST_NAME: Final = 128


@frozen
class OpenCall:
    """A call that is under way: its span, the context in which its stages are children, when it began."""

    span: Span
    context: Context
    began: float


class CallSpans:
    """The calls that are under way. A nested call's span is a child of the span of the call it is nested in."""

    def __init__(self, tracer: Tracer, recorder: Recorder) -> None:
        self._tracer = tracer
        self._recorder = recorder
        self._open: WeakKeyDictionary[ExecutionToken, OpenCall] = WeakKeyDictionary()

    def open(self, exec: ToolExecution) -> OpenCall:
        """The call's span, begun now if it has not been before."""
        call = self._open.get(exec.token)
        if call is None:
            call = self._open[exec.token] = self._begin(exec)
        return call

    def close(self, exec: ToolExecution, result: ToolExecutionResult) -> float:
        """End the call's span; give back how many seconds the call took."""
        call = self.open(exec)
        del self._open[exec.token]
        try:
            self._recorder.result(call.span, result)
        finally:
            call.span.end()
        return time.perf_counter() - call.began

    @contextmanager
    def stage(self, exec: ToolExecution, stage: str) -> Iterator[Span]:
        """A stage of the call: a child span, current for what runs within. An exception goes on its way."""
        span = self._tracer.start_span(stage, self.open(exec).context, attributes={names.STAGE: stage})
        with use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield span
            except BaseException as error:
                # The message may quote what the tool was given; the call's own span has it, where it is wanted.
                span.set_attribute(names.ERROR_TYPE, type(error).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise

    def _begin(self, exec: ToolExecution) -> OpenCall:
        around = self._open.get(exec.parent) if exec.parent is not None else None
        told = self._recorder.name
        name = told(exec.name)[:_LONGEST_NAME]
        attributes = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: name,
            names.TOOL_TYPE: "function",
            names.CALL_ID: told(exec.call_id),
            names.ROOT_CALL_ID: told(exec.root_call_id),
            names.DIGEST: exec.digest,
        }
        if isinstance(exec.agent, str):
            attributes[names.AGENT_ID] = told(exec.agent)
        if around is None:
            attributes.update(_of_mcp(get_current_span()))
        span = self._tracer.start_span(
            f"{names.EXECUTE_TOOL} {name}",
            around.context if around is not None else None,
            kind=SpanKind.INTERNAL,
            attributes=attributes,
        )
        call = OpenCall(span, set_span_in_context(span, around.context if around else None), time.perf_counter())
        self._recorder.call(span, exec.arguments)
        return call


def _of_mcp(span: Span) -> dict[str, str]:
    """What the span of an MCP request says of it, if that is where a call comes from."""
    attributes: Mapping[str, object] = getattr(span, "attributes", None) or {}
    return {name: str(attributes[name]) for name in names.MCP if name in attributes}
