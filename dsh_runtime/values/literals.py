"""Equality of JSON scalars: ``True`` is not ``1``, ``1`` is ``1.0``, integers compare exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

#: A scalar tagged so that equal JSON values, and no others, are equal keys.
ScalarKey: TypeAlias = "tuple[str, object]"


def scalar_key(value: Any) -> ScalarKey:
    """Key a JSON scalar for sets and comparisons. Numbers go by their digits: integers can be made to collide."""
    if value is None or isinstance(value, bool):
        return "constant", value
    if isinstance(value, str):
        return "string", value
    if isinstance(value, float):
        return "number", str(int(value)) if value.is_integer() else repr(value)
    return "number", str(value)


def allowed_literals(schema: Any) -> Sequence[Any] | None:
    """Give the values that ``enum`` and ``const`` leave, or ``None`` when neither stands. Const lies within enum."""
    if "const" in schema:
        return (schema["const"],)
    enum: Sequence[Any] | None = schema.get("enum")
    return enum


def show_literals(values: Sequence[Any]) -> str:
    """List allowed values for a message, a few of them and each cut short."""
    shown = ", ".join(map(show_literal, values[:8]))
    return shown if len(values) == 1 else f"one of {shown}{', …' if len(values) > 8 else ''}"


def show_literal(value: Any) -> str:
    """Show one scalar as JSON writes it, cut short."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = f'"{value[:41]}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 42 else text[:40] + "…"
