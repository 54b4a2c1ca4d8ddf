"""The table of a fiber's states."""

from __future__ import annotations

from itertools import product

import pytest

from dsh_runtime.core.lifecycle import TRANSITIONS, State, check, diagram


@pytest.mark.parametrize(("old", "new"), list(product(State, State)))
def test_only_what_the_table_lists_may_follow(old: State, new: State) -> None:
    if (old, new) in TRANSITIONS:
        assert check(old, new) is new
    else:
        with pytest.raises(AssertionError, match=f"cannot go from {old} to {new}"):
            check(old, new)


def test_every_state_can_be_reached_from_pending() -> None:
    found, seen = [State.PENDING], {State.PENDING}
    for state in found:
        for old, new in TRANSITIONS:
            if old is state and new not in seen:
                seen.add(new)
                found.append(new)
    assert seen == set(State)


def test_every_state_leads_to_disposed_which_leads_nowhere() -> None:
    leads = {State.DISPOSED}
    for _ in State:
        leads |= {old for old, new in TRANSITIONS if new in leads}
    assert leads == set(State)
    assert not [new for old, new in TRANSITIONS if old is State.DISPOSED]


def test_active_is_left_by_way_of_unloading_alone() -> None:
    assert [new for old, new in TRANSITIONS if old is State.ACTIVE] == [State.UNLOADING]


def test_the_diagram_shows_every_transition_with_its_reason() -> None:
    drawn = diagram()
    for (old, new), why in TRANSITIONS.items():
        assert f"{old} --> {new}: {why}" in drawn
    assert drawn.startswith("stateDiagram-v2\n    [*] --> pending") and drawn.endswith("disposed --> [*]")
