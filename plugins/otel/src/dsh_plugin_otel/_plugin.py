"""The plugin: its config, and the events it listens to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from attrs import field, frozen
from attrs.validators import ge
from dsh_hookspecs import (
    ApprovalOutcome,
    ApprovalRequest,
    Context,
    HarnessError,
    PostToolDecision,
    PreToolDecision,
    ToolDispatchExecution,
    ToolExecution,
    ToolExecutionFailure,
    ToolExecutionResult,
)
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.trace import NoOpTracerProvider

from dsh_plugin_otel import _names as names
from dsh_plugin_otel._metrics import CallMetrics
from dsh_plugin_otel._providers import Export, Providers, providers
from dsh_plugin_otel._record import Recorder
from dsh_plugin_otel._spans import CallSpans

NextDecision: TypeAlias = Callable[[], Awaitable[PreToolDecision]]
NextResult: TypeAlias = Callable[[], Awaitable[ToolExecutionResult]]
NextReview: TypeAlias = Callable[[], Awaitable[PostToolDecision]]
NextChannel: TypeAlias = Callable[[], Awaitable[ApprovalOutcome]]

name: Final = "otel"
inject: Final = {"tools": True, "redact": False}
_SCOPE: Final = "dsh_plugin_otel"
_LONGEST_DESCRIPTION: Final = 1024


@frozen
class Config:
    """Where telemetry goes and what of a call's data it has.

    ``export`` is ``process`` (the providers that the process has set), ``otlp`` or ``console`` (own exporters, which
    need the extra ``sdk``), ``service`` the name under which own exporters report. ``arguments`` and ``content`` put
    those on record, in at most ``limit`` characters each, masked by the service ``redact``.
    """

    export: Export = "process"
    service: str = "dsh-runtime"
    arguments: bool = False
    content: bool = False
    limit: int = field(default=4096, validator=ge(16))


def apply(ctx: Context, config: Config) -> None:
    """Listen to every stage; to nothing at all where nobody would see it."""
    chosen = providers(config.export, config.service)
    if chosen.shutdown is not None:
        shutdown = chosen.shutdown
        ctx.effect(lambda: lambda: _in_thread(shutdown))
    if chosen.tracers is None and chosen.meters is None:
        return
    recorder = Recorder(ctx.get("redact"), config.arguments, config.content, config.limit)
    spans = CallSpans((chosen.tracers or NoOpTracerProvider()).get_tracer(_SCOPE), recorder)
    _observe(ctx, spans, chosen)
    if chosen.tracers is not None:
        _trace_stages(ctx, spans, recorder)


def _observe(ctx: Context, spans: CallSpans, chosen: Providers) -> None:
    """Open and close the span of each call, and count it."""
    metrics = CallMetrics((chosen.meters or NoOpMeterProvider()).get_meter(_SCOPE), partial(_is_tool, ctx))

    async def decide(exec: ToolExecution, next: NextDecision) -> PreToolDecision:
        if exec.dry_run:
            return await next()
        with spans.stage(exec, "tools/pre-execute") as span:
            decision = await next()
            span.set_attribute(names.DECISION, type(decision).__name__.lower())
            return decision

    def observe(exec: ToolExecution, result: ToolExecutionResult) -> None:
        if not exec.dry_run:
            metrics.count(exec, result, spans.close(exec, result))

    ctx.on("tools/pre-execute", decide, prepend=True)
    ctx.on("tools/result", observe)


def _trace_stages(ctx: Context, spans: CallSpans, recorder: Recorder) -> None:
    """Give each stage a span of its own."""

    async def run(exec: ToolDispatchExecution, next: NextResult) -> ToolExecutionResult:
        if exec.definition is not None:
            description = str(exec.definition.description)[:_LONGEST_DESCRIPTION]
            spans.open(exec).span.set_attribute(names.TOOL_DESCRIPTION, description)
        with spans.stage(exec, "tools/execute") as span:
            result = await next()
            if isinstance(result, ToolExecutionFailure):
                recorder.failure(span, result)
            return result

    async def review(exec: ToolExecution, next: NextReview) -> PostToolDecision:
        with spans.stage(exec, "tools/post-execute") as span:
            decision = await next()
            span.set_attribute(names.DECISION, type(decision).__name__.lower())
            return decision

    async def ask(request: ApprovalRequest, next: NextChannel) -> ApprovalOutcome:
        if request.exec.dry_run:
            return await next()
        with spans.stage(request.exec, "approval/request") as span:
            outcome = await next()
            span.set_attribute(names.DECISION, outcome)
            return outcome

    ctx.on("tools/execute", run, prepend=True)
    ctx.on("tools/post-execute", review, prepend=True)
    ctx.on("approval/request", ask, prepend=True)


def _is_tool(ctx: Context, exec: ToolExecution) -> bool:
    try:
        return ctx.tools.get(exec.name, exec.agent) is not None
    except HarnessError:
        return False  # The agent's scope has ended.


async def _in_thread(shutdown: Callable[[], None]) -> None:
    """Flush and stop own exporters without holding the loop."""
    import trio

    await trio.to_thread.run_sync(shutdown)
