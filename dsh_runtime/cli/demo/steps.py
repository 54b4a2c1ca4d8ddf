"""The calls of the tour, and what each promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen


@frozen
class Step:
    """One call of the tour; ``promise`` is what its stages are going to say, in order."""

    title: str
    moral: str
    tool: str
    arguments: Mapping[str, Any]
    promise: tuple[tuple[str, str], ...]


STEPS: Final = (
    Step(
        "An allowed call",
        "Policy has no objection, the body runs, the result is rendered for the model.",
        "greet",
        {"name": "Ada"},
        (("pre-execute", "allow"), ("execute", "success"), ("post-execute", "accept"), ("result", "success")),
    ),
    Step(
        "A denied call",
        "A rule of the gate says no, and the body never starts.",
        "fs_read",
        {"path": ".env"},
        (("pre-execute", "deny"), ("post-execute", "accept"), ("result", "DENIED")),
    ),
    Step(
        "A call that a person has to allow",
        "Nobody is there to answer, and silence is no yes: the file stays as it is.",
        "fs_write",
        {"path": "notes.txt", "content": "Buy nothing.\n"},
        (
            ("pre-execute", "ask"),
            ("approval", "unavailable"),
            ("post-execute", "accept"),
            ("result", "APPROVAL_UNAVAILABLE"),
        ),
    ),
    Step(
        "A tool that fails",
        "An exception becomes a result; the host goes on.",
        "divide",
        {"a": 1, "b": 0},
        (("pre-execute", "allow"), ("execute", "failure"), ("post-execute", "accept"), ("result", "ZeroDivisionError")),
    ),
    Step(
        "A tool that takes too long",
        "Its deadline passes, the body is stopped and has come to rest when the call ends.",
        "count_sheep",
        {"number": 30},
        (("pre-execute", "allow"), ("execute", "failure"), ("post-execute", "accept"), ("result", "TOOL_TIMEOUT")),
    ),
)
