"""snapshot_json detaches, freezes and refuses; frozen values read like plain ones."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum, IntEnum, StrEnum
from typing import Any

import pytest
from dsh_hookspecs import JsonValueError
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_runtime.values import FrozenDict, FrozenList, snapshot_json, thaw

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=3), inner, max_size=5)
)


class Shade(StrEnum):
    DARK = "dark"


class Level(IntEnum):
    HIGH = 3


class Odd(Enum):
    ONE = 1


@given(json_values)
@settings(max_examples=150, deadline=None)
def test_a_snapshot_equals_and_dumps_like_its_original(value: Any) -> None:
    frozen = snapshot_json(value)
    assert frozen == value
    assert json.dumps(frozen) == json.dumps(value)
    assert thaw(frozen) == value
    assert snapshot_json(frozen) is frozen or not isinstance(value, (dict, list))


@given(json_values, st.integers(0, 6))
@settings(max_examples=100, deadline=None)
def test_max_depth_refuses_exactly_what_nests_deeper(value: Any, limit: int) -> None:
    def depth(item: Any) -> int:
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list) else None
        return 0 if children is None else 1 + max(map(depth, children), default=0)

    for candidate in (value, snapshot_json(value)):
        if depth(value) > limit:
            with pytest.raises(JsonValueError):
                snapshot_json(candidate, max_depth=limit)
        else:
            assert snapshot_json(candidate, max_depth=limit) == value


def test_a_snapshot_shares_nothing_with_its_original() -> None:
    original: dict[str, Any] = {"a": [1, {"b": []}], "t": (1, [2])}
    frozen = snapshot_json(original)
    original["a"][1]["b"].append(1)
    original["new"] = 1
    assert frozen == {"a": [1, {"b": []}], "t": [1, [2]]}


cycle: list[Any] = []
cycle.append({"again": cycle})
OFFENDERS: dict[str, tuple[Any, str]] = {
    "nan": ([1, float("nan")], "value[1]"),
    "infinity": ({"a": {"b": float("inf")}}, "value.a.b"),
    "surrogate": ({"a": ["é", "\ud800"]}, "value.a[1]"),
    "surrogate key": ({"a": {"\udfff": 1}}, "value.a"),
    "integer key": ([{1: 2}], "value[0]"),
    "bytes": ({"a": b""}, "value.a"),
    "set": ({1, 2}, "value"),
    "object": ([object()], "value[0]"),
    "plain enum": ([Odd.ONE], "value[0]"),
    "long integer": ({"n": 10**5000}, "value.n"),
    "long list of long integers": ([10**5000] * 20, "value[0]"),
    "long list with a surrogate": (["x"] * 20 + ["\ud800"], "value[20]"),
    "long list with nan": ([0.5] * 20 + [float("nan")], "value[20]"),
    "cycle": (cycle, "value[0].again"),
    "first of two": ({"a": [{1}], "b": {2}}, "value.a[0]"),
}


@pytest.mark.parametrize("name", OFFENDERS)
def test_what_json_cannot_carry_is_refused_with_the_path_of_the_first_offender(name: str) -> None:
    value, path = OFFENDERS[name]
    with pytest.raises(JsonValueError) as caught:
        snapshot_json(value)
    assert [violation.path for violation in caught.value.violations] == [path]
    json.dumps(str(caught.value)).encode()


def test_the_root_goes_by_the_name_that_the_caller_gives() -> None:
    with pytest.raises(JsonValueError, match=r"^meta\.x: "):
        snapshot_json({"x": b""}, path="meta")


def test_subclasses_are_taken_by_the_plain_value_that_they_hold() -> None:
    frozen = snapshot_json({Shade.DARK: [Shade.DARK, Level.HIGH, True], "o": OrderedDict(x=1)})
    assert frozen == {"dark": ["dark", 3, True], "o": {"x": 1}}
    assert [type(item) for item in frozen["dark"]] == [str, int, bool]  # type: ignore[call-overload, index]
    assert {type(key) for key in frozen} == {str}  # type: ignore[union-attr]


def test_methods_of_foreign_containers_never_run() -> None:
    class Liar(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError

        __iter__ = keys = values = __getitem__ = __len__ = items

    class Stubborn(list[Any]):
        def __iter__(self) -> Any:
            return iter([object()])

    frozen = snapshot_json([Liar(a=1), Stubborn([1])])
    assert frozen == [{"a": 1}, [1]]


def test_depth_is_bounded_by_memory_alone() -> None:
    deep: Any = []
    for level in range(100_000):
        deep = [deep] if level % 2 else {"a": deep}
    frozen = snapshot_json(deep)
    assert isinstance(thaw(frozen), list)
    deep = {1}
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(JsonValueError):
        snapshot_json(deep)


def test_shared_references_are_frozen_once_however_they_multiply() -> None:
    shared: Any = ["x"]
    for _ in range(200):
        shared = [shared, shared]
    frozen: Any = snapshot_json(shared)
    assert frozen[0] is frozen[1]
    assert snapshot_json(shared, max_depth=201)
    with pytest.raises(JsonValueError):
        snapshot_json(shared, max_depth=200)
    copy_of_it = thaw(frozen)
    assert copy_of_it[0] is copy_of_it[1]


def test_a_large_cyclic_list_is_refused_too() -> None:
    ring: list[Any] = list(range(20))
    ring.append(ring)
    with pytest.raises(JsonValueError):
        snapshot_json(ring)


def test_negative_zero_is_kept() -> None:
    assert str(snapshot_json(-0.0)) == "-0.0"


DICT_CHANGES: list[Callable[[Any], object]] = [
    lambda d: d.__setitem__("a", 1),
    lambda d: d.__delitem__("a"),
    lambda d: d.__init__({}),
    lambda d: d.__ior__({"b": 1}),
    lambda d: d.clear(),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.setdefault("z", 1),
    lambda d: d.update(a=2),
    lambda d: setattr(d, "x", 1),
    lambda d: setattr(d, "__class__", dict),
    lambda d: delattr(d, "x"),
]
LIST_CHANGES: list[Callable[[Any], object]] = [
    lambda x: x.__setitem__(0, 1),
    lambda x: x.__setitem__(slice(None), []),
    lambda x: x.__delitem__(0),
    lambda x: x.__init__([]),
    lambda x: x.__iadd__([1]),
    lambda x: x.__imul__(2),
    lambda x: x.append(1),
    lambda x: x.clear(),
    lambda x: x.extend([1]),
    lambda x: x.insert(0, 1),
    lambda x: x.pop(),
    lambda x: x.remove(2),
    lambda x: x.reverse(),
    lambda x: x.sort(),
    lambda x: setattr(x, "x", 1),
    lambda x: delattr(x, "x"),
]


@pytest.mark.parametrize("change", DICT_CHANGES)
def test_a_frozen_dict_refuses_every_change(change: Callable[[Any], object]) -> None:
    frozen = snapshot_json({"a": 1})
    with pytest.raises(TypeError):
        change(frozen)
    assert frozen == {"a": 1}


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_frozen_list_refuses_every_change(change: Callable[[Any], object]) -> None:
    frozen = snapshot_json([2, 1])
    with pytest.raises(TypeError):
        change(frozen)
    assert frozen == [2, 1]


@pytest.mark.parametrize("plain", [dict, list])
def test_no_mutating_method_of_the_base_class_is_left(plain: type) -> None:
    """A method added to dict or list by a newer Python would show here."""
    frozen = {dict: FrozenDict, list: FrozenList}[plain]
    reading = {"copy", "count", "fromkeys", "get", "index", "items", "keys", "values"}
    public = {name for name in vars(plain) if not name.startswith("_")} - reading
    assert public <= set(vars(frozen))


def test_frozen_containers_cannot_be_built_by_hand() -> None:
    for build in (lambda: FrozenDict({"a": []}), lambda: FrozenList([[]]), lambda: FrozenDict.fromkeys("ab")):
        with pytest.raises(TypeError, match="snapshot_json"):
            build()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_and_pickles_of_a_frozen_value_are_frozen_and_equal(again: Callable[[Any], Any]) -> None:
    frozen = snapshot_json({"a": [1, {"b": [None]}]})
    twin = again(frozen)
    assert twin == frozen
    assert type(twin) is FrozenDict
    assert type(twin["a"]) is FrozenList
    assert type(twin["a"][1]) is FrozenDict


def test_operators_that_make_new_containers_leave_the_frozen_one_alone() -> None:
    frozen: Any = snapshot_json({"a": [1]})
    assert (frozen | {"b": 2}) == {"a": [1], "b": 2}
    assert frozen["a"] + [2] == [1, 2]
    assert frozen == {"a": [1]}


def test_a_shared_container_counts_at_the_deepest_place_where_it_stands() -> None:
    shared = [[["x"]]]
    for levels in (5, 150):
        deep: Any = shared
        for _ in range(levels):
            deep = [deep]
        assert snapshot_json([shared, deep], max_depth=levels + 4)
        with pytest.raises(JsonValueError):
            snapshot_json([shared, deep], max_depth=levels + 3)
