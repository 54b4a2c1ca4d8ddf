"""Names for JSON as it crosses the boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

JsonScalar: TypeAlias = "str | int | float | bool | None"
JsonValue: TypeAlias = "JsonScalar | Sequence[JsonValue] | Mapping[str, JsonValue]"

#: One block of content for the model: an object with a ``type`` (``text``, ``image``, ``audio``, ``resource``, …).
ContentBlock: TypeAlias = "Mapping[str, Any]"
Content: TypeAlias = "Sequence[ContentBlock]"
