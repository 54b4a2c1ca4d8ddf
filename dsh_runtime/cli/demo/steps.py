"""The calls of the tour, and what each promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from attrs import frozen

Stages: TypeAlias = tuple[tuple[str, str], ...]


@frozen
class Ending:
    """What the stages of a call say, in order, and what that shows."""

    stages: Stages
    moral: str


@frozen
class Step:
    """One call of the tour, and how it may end. ``asks`` says that a person is to be asked, where there is one."""

    title: str
    tool: str
    arguments: Mapping[str, Any]
    endings: tuple[Ending, ...]
    asks: bool = False


def _refused(outcome: str, moral: str) -> Ending:
    """The ending of a call that nobody has allowed."""
    code = f"APPROVAL_{outcome.upper()}"
    stages = (("pre-execute", "ask"), ("approval", outcome), ("post-execute", "accept"), ("result", code))
    return Ending(stages, moral)


def _ran(outcome: str, result: str, moral: str) -> Ending:
    """The ending of a call that policy has let through."""
    stages = (("pre-execute", "allow"), ("execute", outcome), ("post-execute", "accept"), ("result", result))
    return Ending(stages, moral)


_ALLOWED: Final = Ending(
    (
        ("pre-execute", "ask"),
        ("approval", "allowed-once"),
        ("execute", "success"),
        ("post-execute", "accept"),
        ("result", "success"),
    ),
    "You said yes, so this one call ran. The next one is asked about again.",
)

STEPS: Final = (
    Step(
        "An allowed call",
        "greet",
        {"name": "Ada"},
        (_ran("success", "success", "Policy has no objection, the body runs, the result is rendered for the model."),),
    ),
    Step(
        "A denied call",
        "fs_read",
        {"path": ".env"},
        (
            Ending(
                (("pre-execute", "deny"), ("post-execute", "accept"), ("result", "DENIED")),
                "A rule of the gate says no, and the body never starts.",
            ),
        ),
    ),
    Step(
        "A call that a person has to allow, while nobody can be asked",
        "fs_write",
        {"path": "notes.txt", "content": "Buy nothing.\n"},
        (
            _refused(
                "unavailable",
                "No plugin is loaded yet that asks anybody, and silence is no yes: the file stays as it is.",
            ),
        ),
    ),
    Step(
        "A call that a person is asked about",
        "shell_run",
        {"command": "wc -w notes.txt"},
        (
            _ALLOWED,
            _refused("rejected", "You said no: the command never ran."),
            _refused("expired", "Nobody answered in time, and silence is no yes: the command never ran."),
            _refused(
                "unavailable",
                "Nobody is there, so the call was refused and the command never ran. "
                "Take the tour at a terminal to answer yourself.",
            ),
        ),
        asks=True,
    ),
    Step(
        "A tool that fails",
        "divide",
        {"a": 1, "b": 0},
        (_ran("failure", "ZeroDivisionError", "An exception becomes a result; the host goes on."),),
    ),
    Step(
        "A tool that takes too long",
        "count_sheep",
        {"number": 30},
        (
            _ran(
                "failure",
                "TOOL_TIMEOUT",
                "Its deadline passes, the body is stopped and has come to rest when the call ends.",
            ),
        ),
    ),
)
