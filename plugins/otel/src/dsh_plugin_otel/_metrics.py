"""How many calls there were, how long they took, and how they failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from dsh_hookspecs import ToolExecution, ToolExecutionFailure, ToolExecutionResult
from opentelemetry.metrics import Meter

from dsh_plugin_otel import _names as names
from dsh_plugin_otel._record import error_type

#: The bounds that the conventions give for durations of this kind, in seconds.
_BOUNDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)

IsTool: TypeAlias = Callable[[ToolExecution], bool]


class CallMetrics:
    """The instruments; ``is_tool`` tells whether the tool that a call names exists."""

    def __init__(self, meter: Meter, is_tool: IsTool) -> None:
        self._is_tool = is_tool
        self._duration = meter.create_histogram(
            names.DURATION, "s", "How long tool calls took.", explicit_bucket_boundaries_advisory=_BOUNDS
        )
        self._calls = meter.create_counter(names.CALLS, "{call}", "Tool calls that have ended.")
        self._errors = meter.create_counter(names.ERRORS, "{call}", "Tool calls that have failed, by code.")

    def count(self, exec: ToolExecution, result: ToolExecutionResult, seconds: float) -> None:
        """Count one call that has ended."""
        attributes = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: exec.name, names.TOOL_TYPE: "function"}
        if isinstance(result, ToolExecutionFailure):
            attributes[names.ERROR_TYPE] = error_type(result)
            if not self._is_tool(exec):  # Its name is whatever a model made up, whoever refused the call.
                attributes[names.TOOL_NAME] = names.OTHER
            self._errors.add(1, attributes)
        self._calls.add(1, attributes)
        self._duration.record(seconds, attributes)
