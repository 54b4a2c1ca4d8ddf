"""Argument paths: which values they find."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from dsh_hookspecs import JsonValue
from dsh_plugin_permission_gate._select import MAX_PATH, PathError, parse_path
from hypothesis import given
from hypothesis import strategies as st

ARGUMENTS: JsonValue = {
    "path": "a.txt",
    "files": [{"path": "b.txt", "mode": 1}, {"path": "c.txt"}],
    "env": {"HOME": "/home/ada", "a.b": {"*": "odd"}},
    "none": None,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("path", ["a.txt"]),
        ("none", [None]),
        ("missing", []),
        ("path.deeper", []),
        ("files.0.path", ["b.txt"]),
        ("files.2.path", []),
        ("files.-1.path", []),
        ("files.*.path", ["b.txt", "c.txt"]),
        ("files.*.mode", [1]),
        ("env.*", ["/home/ada", {"*": "odd"}]),
        (r"env.a\.b.\*", ["odd"]),
        ("files.0.**", ["path", "mode", "b.txt"]),
    ],
)
def test_a_path_finds(path: str, values: Sequence[JsonValue]) -> None:
    assert sorted(parse_path(path).values(ARGUMENTS), key=str) == sorted(values, key=str)


def test_two_stars_find_every_string_and_every_name() -> None:
    found = parse_path("**").values(ARGUMENTS)
    assert {"a.txt", "b.txt", "c.txt", "/home/ada", "odd", "HOME", "a.b", "*", "files"} <= set(found)
    assert all(isinstance(value, str) for value in found)


@given(JSON, st.text(min_size=1))
def test_two_stars_find_a_string_wherever_it_hides(value: JsonValue, secret: str) -> None:
    for hidden in ([value, secret], {"deep": [{"down": [value, secret]}]}, {secret: value}):
        assert secret in parse_path("**").values(hidden)


def test_two_stars_find_a_string_below_a_thousand_lists() -> None:
    value: JsonValue = "deep"
    for _ in range(10_000):
        value = [value]
    assert parse_path("**").values(value) == ["deep"]


@given(st.text(min_size=1, max_size=20))
def test_any_name_can_be_written_with_backslashes(name: str) -> None:
    escaped = "".join(f"\\{char}" if char in r"\.*" else char for char in name)
    assert parse_path(escaped).values({name: 1, f"{name}x": 2}) == [1]


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "a\\", "**.a", "a.**.b", "a" * (MAX_PATH + 1)])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(PathError, match="argument path"):
        parse_path(path)
