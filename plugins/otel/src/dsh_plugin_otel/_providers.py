"""Where spans and metrics go: to the providers of the process, or to exporters of the plugin's own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias

from attrs import frozen
from dsh_hookspecs import HarnessError
from opentelemetry import metrics, trace

Export: TypeAlias = Literal["process", "otlp", "console"]


class OtelError(HarnessError):
    """Telemetry is asked for that cannot be had."""

    default_code = "OTEL_UNAVAILABLE"


@frozen
class Providers:
    """What makes tracers and meters; ``None`` where nobody would see them. ``shutdown`` blocks."""

    tracers: trace.TracerProvider | None
    meters: metrics.MeterProvider | None
    shutdown: Callable[[], None] | None = None


def providers(export: Export, service: str) -> Providers:
    """The providers by the config."""
    if export == "process":
        return _of_process()
    try:
        return _own(export, service)
    except ImportError as error:
        raise OtelError(
            f"export = {export!r} needs the OpenTelemetry SDK and its exporters, and {error.name!r} is not installed; "
            "run: pip install 'dsh-plugin-otel[sdk]'"
        ) from error


def _of_process() -> Providers:
    tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
    return Providers(
        None if _is_empty(tracers, trace.__name__) else tracers, None if _is_empty(meters, metrics.__name__) else meters
    )


def _is_empty(provider: object, api: str) -> bool:
    """Whether a provider exports nothing: those that the API package itself brings do not."""
    return type(provider).__module__.startswith(api)


def _own(export: Export, service: str) -> Providers:
    make_spans, make_numbers = _EXPORTERS[export]
    resource = _load("opentelemetry.sdk.resources", "Resource").create({"service.name": service})
    spans = _load("opentelemetry.sdk.trace.export", "BatchSpanProcessor")(make_spans())
    numbers = _load("opentelemetry.sdk.metrics.export", "PeriodicExportingMetricReader")(make_numbers())
    tracers = _load("opentelemetry.sdk.trace", "TracerProvider")(resource=resource, shutdown_on_exit=False)
    meters = _load("opentelemetry.sdk.metrics", "MeterProvider")([numbers], resource=resource, shutdown_on_exit=False)
    tracers.add_span_processor(spans)

    def shutdown() -> None:
        tracers.shutdown()
        meters.shutdown()

    return Providers(tracers, meters, shutdown)


def _load(module: str, name: str) -> Any:
    """A name of the SDK, which need not be installed."""
    return getattr(import_module(module), name)


def _otlp_spans() -> Any:
    return _load("opentelemetry.exporter.otlp.proto.http.trace_exporter", "OTLPSpanExporter")()


def _otlp_metrics() -> Any:
    return _load("opentelemetry.exporter.otlp.proto.http.metric_exporter", "OTLPMetricExporter")()


# Standard output belongs to the host: it may be a protocol.
def _console_spans() -> Any:
    return _load("opentelemetry.sdk.trace.export", "ConsoleSpanExporter")(out=sys.stderr)


def _console_metrics() -> Any:
    return _load("opentelemetry.sdk.metrics.export", "ConsoleMetricExporter")(out=sys.stderr)


_EXPORTERS: Final[dict[str, tuple[Callable[[], Any], Callable[[], Any]]]] = {
    "otlp": (_otlp_spans, _otlp_metrics),
    "console": (_console_spans, _console_metrics),
}
