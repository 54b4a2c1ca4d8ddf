"""OpenTelemetry for tool calls: a span a call with a child for each stage, and metrics.

Layering, lowest first: ``_names``; ``_record``, ``_providers``; ``_spans``, ``_metrics``; ``_plugin``.
"""

from __future__ import annotations

from dsh_plugin_otel._plugin import Config, apply, inject, name
from dsh_plugin_otel._providers import OtelError

__all__ = ["Config", "OtelError", "apply", "inject", "name"]
