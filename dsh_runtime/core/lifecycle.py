"""The states of a fiber as a table: what may follow what, and why.

    A fiber is *pending* until its services are there, *loading* while `apply` runs, *active* while what it registered
    is in force, *unloading* while that is undone. *failed* keeps the error. *disposed* is the end.

Everything that changes a state goes through :func:`check`; the diagram in the docs is drawn by :func:`diagram`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a fiber stands."""

    PENDING = "pending"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    UNLOADING = "unloading"
    DISPOSED = "disposed"


TRANSITIONS: Final[dict[tuple[State, State], str]] = {
    (State.PENDING, State.LOADING): "every required service is there, and it is this fiber's turn",
    (State.PENDING, State.FAILED): "the config is refused",
    (State.PENDING, State.DISPOSED): "disposal is asked for",
    (State.LOADING, State.ACTIVE): "apply returned",
    (State.LOADING, State.UNLOADING): "apply raised, or disposal, an update or a lost service cancelled it",
    (State.ACTIVE, State.UNLOADING): "disposal, an update, a changed service, or a crashed background task",
    (State.UNLOADING, State.PENDING): "to be applied afresh",
    (State.UNLOADING, State.FAILED): "apply raised or a background task crashed",
    (State.UNLOADING, State.DISPOSED): "disposal is asked for",
    (State.FAILED, State.PENDING): "an update tries again",
    (State.FAILED, State.DISPOSED): "disposal is asked for",
}


def check(old: State, new: State) -> State:
    """Give back ``new`` if it may follow ``old``; anything else is a bug of the core."""
    if (old, new) not in TRANSITIONS:
        raise AssertionError(f"a fiber cannot go from {old} to {new}")
    return new


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> pending"]
    lines += [f"    {old} --> {new}: {why}" for (old, new), why in TRANSITIONS.items()]
    return "\n".join([*lines, "    disposed --> [*]"])
