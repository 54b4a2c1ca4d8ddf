"""The ledger: keys, groups, versions, watchers, staging and merging."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime import ClashError
from dsh_runtime.core.ledger import Entry, Ledger


@define(eq=False)
class Owner:
    """What the ledger knows of a fiber."""

    id: str
    path: tuple[int, ...] = ()
    entries: dict[Any, None] = field(factory=dict)


def entry(
    owner: Owner,
    key: Any = None,
    value: Any = None,
    *,
    table: str = "t",
    scope: Any = None,
    seq: int = 0,
    band: int = 0,
) -> Entry:
    return Entry(owner, table, scope, key, value, band, seq)  # type: ignore[arg-type]


A, B = Owner("a", (0,)), Owner("b", (1,))


@pytest.fixture
def ledger() -> Ledger:
    """An empty live ledger."""
    return Ledger()


def test_an_entry_is_found_under_its_key_in_its_scope(ledger: Ledger) -> None:
    one = entry(A, "k")
    ledger.add(one)
    assert ledger.find("t", None, "k") is one
    assert ledger.find("t", "scope", "k") is None and ledger.find("u", None, "k") is None


def test_a_second_entry_of_one_key_is_refused_naming_both_owners_and_leaves_nothing(ledger: Ledger) -> None:
    ledger.add(entry(A, "k", table="tool"))
    version = ledger.version
    refused = entry(B, "k", table="tool")
    with pytest.raises(
        ClashError, match=r"plugin 'b' registers tool 'k', which plugin 'a' has .*; rename one .* unload 'a'"
    ):
        ledger.add(refused)
    assert refused not in B.entries and ledger.version == version and len(list(ledger.group("tool", None))) == 1


def test_removing_frees_the_key_and_twice_is_once(ledger: Ledger) -> None:
    one = entry(A, "k")
    ledger.add(one)
    ledger.remove(one)
    version = ledger.version
    ledger.remove(one)
    assert (ledger.version, one.live, ledger.find("t", None, "k")) == (version, False, None)
    ledger.add(entry(B, "k"))


def test_removing_an_old_entry_leaves_its_successor(ledger: Ledger) -> None:
    old, new = entry(A, "k"), entry(A, "k")
    ledger.add(old)
    ledger.remove(old)
    ledger.add(new)
    ledger.remove(old)
    assert ledger.find("t", None, "k") is new


def test_entries_resolve_by_band_place_and_sequence(ledger: Ledger) -> None:
    entries = [entry(B, seq=0), entry(A, seq=1), entry(A, seq=0), entry(B, seq=5, band=-1), entry(A, seq=9, band=1)]
    for one in entries:
        ledger.add(one)
    assert ledger.resolve("t", (None,)) == tuple(entries[n] for n in (3, 2, 1, 0, 4))


def test_several_scopes_resolve_into_one_order(ledger: Ledger) -> None:
    inner, outer = entry(A, scope="s"), entry(B)
    ledger.add(outer)
    ledger.add(inner)
    assert ledger.resolve("t", (None, "s")) == (inner, outer)


def test_withdrawing_a_fiber_takes_its_entries_and_touches_each_table_once(ledger: Ledger) -> None:
    owner = Owner("x")
    for n in range(3):
        ledger.add(entry(owner, n))
        ledger.add(entry(owner, table="u"))
    touched: list[str] = []
    ledger.watch("t", lambda entries: touched.append("t"))
    ledger.watch("u", lambda entries: touched.append("u"))
    ledger.withdraw(owner)  # type: ignore[arg-type]
    assert sorted(touched) == ["t", "u"] and not owner.entries and not list(ledger.group("t", None))


def test_withdrawing_a_scope_takes_everybodys_entries_for_it_alone(ledger: Ledger) -> None:
    a, b = Owner("a"), Owner("b")
    for owner in (a, b):
        ledger.add(entry(owner, scope="s"))
        ledger.add(entry(owner))
    ledger.withdraw_scope("s")
    assert not list(ledger.group("t", "s")) and len(list(ledger.group("t", None))) == 2


def test_a_watcher_hears_of_its_family_until_it_is_undone(ledger: Ledger) -> None:
    heard: list[Any] = []
    undo = ledger.watch("on", lambda entries: heard.append(entries))
    ledger.add(one := entry(A, table="on:tools/result"))
    ledger.add(entry(A, table="other"))
    undo()
    undo()
    ledger.add(entry(A, table="on:tools/result"))
    assert heard == [(one,)] and ledger.versions["on"] == 2


# Staging.


def staged(live: Ledger, *replaces: Owner) -> Ledger:
    return Ledger(live, replaces)  # type: ignore[arg-type]


def test_what_is_staged_is_not_seen_by_the_live_ledger(ledger: Ledger) -> None:
    side, version = staged(ledger, A), ledger.version
    side.add(entry(B, "k"))
    assert ledger.find("t", None, "k") is None and ledger.version == version and not ledger.resolve("t", (None,))


def test_a_staged_ledger_sees_the_live_entries_but_not_those_it_replaces(ledger: Ledger) -> None:
    old, other, new = Owner("old"), Owner("other"), Owner("new")
    ledger.add(entry(old, "k"))
    kept = entry(other, "l")
    ledger.add(kept)
    side = staged(ledger, old)
    mine = entry(new, "k")
    side.add(mine)
    assert side.find("t", None, "k") is mine and side.find("t", None, "l") is kept
    assert set(side.group("t", None)) == {kept, mine}


def test_what_is_staged_does_not_clash_with_what_it_replaces_and_merges_in_its_place(ledger: Ledger) -> None:
    old, new = Owner("old"), Owner("new")
    ledger.add(entry(old, "k"))
    side = staged(ledger, old)
    mine = entry(new, "k")
    side.add(mine)
    ledger.merge(side)
    assert ledger.find("t", None, "k") is mine and list(ledger.group("t", None)) == [mine]
    assert not old.entries and list(new.entries) == [mine]


def test_what_is_staged_clashes_with_somebody_elses_and_a_refused_merge_changes_nothing(ledger: Ledger) -> None:
    old, other, new = Owner("old"), Owner("other"), Owner("new")
    ledger.add(entry(old, "mine"))
    taken = entry(other, "taken")
    side = staged(ledger, old)
    side.add(entry(new, "taken"))
    ledger.add(taken)
    version = ledger.version
    with pytest.raises(ClashError, match="'new' registers t 'taken', which plugin 'other'"):
        ledger.merge(side)
    assert ledger.find("t", None, "taken") is taken and ledger.find("t", None, "mine") is not None
    assert ledger.version == version


def test_what_is_staged_clashes_at_once_with_somebody_elses_that_is_there(ledger: Ledger) -> None:
    ledger.add(entry(Owner("other"), "k"))
    with pytest.raises(ClashError, match="'new' registers t 'k', which plugin 'other'"):
        staged(ledger, Owner("old")).add(entry(Owner("new"), "k"))


def test_merging_touches_each_changed_table_once_and_no_other_when_it_is_told(ledger: Ledger) -> None:
    old, new = Owner("old"), Owner("new")
    for n in range(3):
        ledger.add(entry(old, n, table="gone"))
    ledger.add(entry(Owner("other"), table="same"))
    side = staged(ledger, old)
    for n in range(3):
        side.add(entry(new, n, table="came"))
    touched: list[str] = []
    for table in ("gone", "came", "same"):
        ledger.watch(table, lambda entries, table=table: touched.append(table))  # type: ignore[misc]
    changed = ledger.merge(side)
    assert touched == []
    ledger.tell(changed)
    assert sorted(touched) == ["came", "gone"]


def test_entries_merged_in_can_be_removed_from_the_live_ledger(ledger: Ledger) -> None:
    new = Owner("new")
    side = staged(ledger, Owner("old"))
    one = entry(new, "k")
    side.add(one)
    ledger.merge(side)
    ledger.remove(one)
    assert ledger.find("t", None, "k") is None and not new.entries


keys = st.sampled_from(["x", "y", None])
moves = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "withdraw"]), st.integers(0, 2), keys, st.sampled_from([None, "s"]))
)


@given(moves)
def test_a_ledger_is_what_a_list_of_entries_would_be(plan: list[tuple[str, int, Any, Any]]) -> None:
    ledger, owners, oracle = Ledger(), [Owner(str(n), (n,)) for n in range(3)], list[Entry]()
    for seq, (what, who, key, scope) in enumerate(plan):
        owner = owners[who]
        if what == "add":
            one = entry(owner, key, scope=scope, seq=seq)
            if key is not None and any((e.key, e.scope) == (key, scope) for e in oracle):
                with pytest.raises(ClashError):
                    ledger.add(one)
            else:
                ledger.add(one)
                oracle.append(one)
        elif what == "remove" and oracle:
            ledger.remove(oracle.pop(who % len(oracle)))
        elif what == "withdraw":
            ledger.withdraw(owner)  # type: ignore[arg-type]
            oracle = [e for e in oracle if e.fiber is not owner]
    for scope in (None, "s"):
        assert list(ledger.group("t", scope)) == [e for e in oracle if e.scope == scope]
        for key in ("x", "y"):
            found = [e for e in oracle if (e.key, e.scope) == (key, scope)]
            assert ledger.find("t", scope, key) is (found[0] if found else None)
    for owner in owners:
        assert list(owner.entries) == [e for e in oracle if e.fiber is owner]
    if not oracle:
        assert not ledger._groups and not ledger._index
