"""Reads the conformance vectors that stand beside the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "conformance"


def read(name: str) -> list[Any]:
    """Give the vectors of one file, each as a parameter named by its id."""
    file = FOLDER / f"{name}.jsonl"
    if not file.exists():
        skip = pytest.mark.skip(reason=f"{file} is absent: this checkout has no conformance vectors")
        return [pytest.param({}, id=f"{name}-absent", marks=skip)]
    vectors = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
    return [pytest.param(vector, id=vector["id"]) for vector in vectors]


def holds_lone_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def holds_negative_zero(value: Any) -> bool:
    """Tell whether the value was written with a negative zero; ``-0`` itself is read as plain zero."""
    text = json.dumps(value)
    return "-0.0" in text


def holds_large_integer(value: Any) -> bool:
    """Tell whether a number in the value is beyond what a double holds exactly."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, (dict, list)):
            pending.extend(item.values() if isinstance(item, dict) else item)
        elif isinstance(item, (int, float)) and 2**53 < abs(item) < float("inf"):
            return True
    return False


_INSIDE = "(inside)"


def build(recipe: dict[str, Any]) -> Any:
    """Follow the recipe of a deep vector, level by level: ``json`` would have to recurse."""
    if "literal" in recipe:
        return json.loads(recipe["literal"])
    value = json.loads(recipe["leaf"])
    for _ in range(recipe["depth"]):
        value = _around(json.loads(recipe["open"] + json.dumps(_INSIDE) + recipe["close"]), value)
    return value


def _around(level: Any, inside: Any) -> Any:
    """One level with its marker replaced."""
    pending = [level]
    while pending:
        container = pending.pop()
        for key, child in list(container.items() if isinstance(container, dict) else enumerate(container)):
            if child == _INSIDE:
                container[key] = inside
                return level
            if isinstance(child, (dict, list)):
                pending.append(child)
    raise AssertionError("the recipe's level has no inside")
