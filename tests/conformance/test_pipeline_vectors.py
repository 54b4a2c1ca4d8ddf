"""Every conformance vector of the pipeline has a test, or a reason why this runtime deliberately differs."""

from __future__ import annotations

import ast
from pathlib import Path

from pipeline_vectors import read_vectors

NUMBERS = "-0.0 is a number like any other: Python's json gives it back."
CLOSED = "A decision that is none fails closed; there it ran the body and skipped the guards."
HEARD = "An early allow does not skip the listeners behind it."
AGAIN = "next() called again runs everything downstream again; there it skipped the listeners that had run."
FROZEN = "The execution is frozen from the start, and so are error results."
PINNED = "The definition is pinned when the call enters: body, finalizer and re-rendering are of one version."

EXCEPTIONS = {
    "pl-013-args": NUMBERS,
    "pl-120-output": NUMBERS,
    "pl-028-args": FROZEN,
    "pl-029-args": FROZEN,
    "pl-097-around": FROZEN,
    "pl-179-post": FROZEN,
    "pl-034-pre": CLOSED,
    "pl-035-pre": CLOSED,
    "pl-038-pre": HEARD,
    "pl-039-pre": AGAIN,
    "pl-091-around": AGAIN,
    "pl-180-post": PINNED,
    "pl-200-finalize": PINNED,
    "pl-133-render": "Content must be a list of blocks that each have a type.",
    "pl-138-meta": "presentation_meta returning None means no meta; there an undefined meta failed the call.",
    "pl-140-meta": "presentation_meta returning None means no meta; there it was kept as a null.",
    "pl-152-conclude": "A Python method taken off its object stays bound, so calling it works.",
    "pl-157-conclude": "Only a body can conclude the turn.",
    "pl-188-finalize": "finalize_content returning None keeps the content.",
    "pl-219-abort": "A body that ends because of its signal is ABORTED, also when it raises the signal's reason.",
    "pl-249-scope": "A call for a scope that has been disposed is refused, not run with the scope's guards gone.",
    "pl-262-register": "render may be left out: the value is then shown as one text block.",
}


def test_every_vector_has_a_test_or_a_reason() -> None:
    assert _tested() | EXCEPTIONS.keys() >= read_vectors().keys()


def test_no_vector_has_both_a_test_and_a_reason() -> None:
    assert not _tested() & EXCEPTIONS.keys()


def test_every_id_that_is_named_exists() -> None:
    assert _tested() | EXCEPTIONS.keys() <= read_vectors().keys()


def _tested() -> set[str]:
    """The ids that the test modules beside this one give to ``@vectors(...)``."""
    return {
        constant.value
        for file in Path(__file__).parent.glob("test_pipeline_*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", None) == "vectors"
        for constant in decorator.args
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    }
