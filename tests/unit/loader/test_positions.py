"""The locator finds the line of everything in a TOML text."""

from __future__ import annotations

import json
import time
import tomllib
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.loader import positions
from dsh_runtime.loader.errors import KeyPath
from dsh_runtime.loader.positions import TooMuchError, nearest_line, scan


def lines_of(text: str) -> dict[KeyPath, int]:
    return scan(dedent(text).lstrip("\n"))


def test_top_level_keys() -> None:
    assert lines_of("""
        a = 1
        # a comment = 3
        b = 2  # trailing

        c = 3
    """) == {("a",): 1, ("b",): 3, ("c",): 5}


def test_tables_and_their_keys() -> None:
    assert lines_of("""
        [a]
        x = 1
        [b.c]
        y = 2
    """) == {("a",): 1, ("a", "x"): 2, ("b",): 3, ("b", "c"): 3, ("b", "c", "y"): 4}


def test_a_table_stands_where_its_own_header_is_even_after_its_children() -> None:
    assert lines_of("[a.b]\n[a]\n")["a",] == 2


def test_arrays_of_tables_number_their_items() -> None:
    found = lines_of("""
        [[plugin]]
        id = "a"
        [[plugin]]
        id = "b"
        [plugin.config]
        x = 1
        [[plugin.config.rules]]
        tool = "t"
        [[plugin.config.rules]]
        tool = "u"
    """)
    assert found["plugin",] == 1
    assert found["plugin", 0, "id"] == 2
    assert found["plugin", 1] == 3
    assert found["plugin", 1, "config", "x"] == 6
    assert found["plugin", 1, "config", "rules", 1, "tool"] == 10


def test_dotted_keys() -> None:
    assert lines_of("\na . b.c = 1\na.d = 2") == {("a",): 1, ("a", "b"): 1, ("a", "b", "c"): 1, ("a", "d"): 2}


def test_quoted_keys_are_read_as_the_parser_reads_them() -> None:
    text = r"""
"a.b" = 1
'c "d' = 2
"tab\tand é" = 3
["x.y".'z']
"""
    assert scan(text) == {("a.b",): 2, ('c "d',): 3, ("tab\tand é",): 4, ("x.y",): 5, ("x.y", "z"): 5}


def test_items_of_arrays_that_span_lines() -> None:
    found = lines_of("""
        rules = [ # comment ]
          1, 2,
          [ 3,
            4 ],
          { tool = "x", deep = [
            5,
          ] },
        ]
        after = 1
    """)
    assert [found["rules", i] for i in range(4)] == [2, 2, 3, 5]
    assert found["rules", 2, 1] == 4
    assert found["rules", 3, "tool"] == 5
    assert found["rules", 3, "deep", 0] == 6
    assert found["after",] == 9


def test_inline_tables_with_dotted_and_quoted_keys() -> None:
    found = scan('a = { b.c = 1, "d e" = { f = [] } }')
    assert set(found) == {("a",), ("a", "b"), ("a", "b", "c"), ("a", "d e"), ("a", "d e", "f")}


@pytest.mark.parametrize(
    "value",
    [
        '"""\na = 1\n[b]\n"""',
        "'''\na = 1\n]]\n'''",
        r'"""\n quoted \""" still\n' + '\n"""',
        '"""one "" two\n"""""',
        "''''quoted'\n'''''",
        '"# no comment [ { \\" ="',
        "'C:\\'",
        '""',
        '""""""',
    ],
)
def test_strings_are_hopped_over(value: str) -> None:
    text = f"before = {value}\nafter = 1"
    assert set(tomllib.loads(text)) == {"before", "after"}
    assert scan(text) == {("before",): 1, ("after",): text.count("\n") + 1}


def test_line_ends_of_windows_count_once() -> None:
    assert scan("a = 1\r\n\r\nb = [\r\n1]\r\n") == {("a",): 1, ("b",): 3, ("b", 0): 4}


def test_the_nearest_line_is_that_of_the_closest_thing_around() -> None:
    lines = scan("[a]\nb = 1")
    assert nearest_line(lines, ("a", "b", "c", 0)) == 2
    assert nearest_line(lines, ("a", "zzz")) == 1
    assert nearest_line(lines, ("zzz",)) == 1


@pytest.mark.parametrize(
    "text", ["a." * 500_000, "a = " + "[" * 500_000, "[" + "a." * 500_000, "a = " + "{a=" * 200_000]
)
def test_a_text_that_nests_too_deep_is_refused_at_once(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(TooMuchError, match="nests deeper"):
        scan(text)
    assert time.perf_counter() - started < 2


def test_a_text_with_too_many_values_is_refused() -> None:
    with pytest.raises(TooMuchError, match="more than") as caught:
        scan("a = [\n" + "1,\n" * (positions.MAX_VALUES + 1) + "]")
    assert caught.value.line > positions.MAX_VALUES - 3


# --- properties ---------------------------------------------------------------------------------------------------

TOML_CHARS = "ab1 .=[]{}\"'#\n\\,\r-"


@given(st.text(TOML_CHARS, max_size=60) | st.text(max_size=60))
def test_no_text_makes_it_crash(text: str) -> None:
    found = scan(text)
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())


@given(st.text(TOML_CHARS, max_size=40))
def test_whatever_the_parser_accepts_is_found_in_full(text: str) -> None:
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(scan(text)) == set(paths_of(parsed))


def paths_of(value: object, path: KeyPath = ()) -> list[KeyPath]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return ([path] if path else []) + [p for key, child in children for p in paths_of(child, (*path, key))]


class Writer:
    """Writes a document in a style that hypothesis picks, and notes at which line it put what."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.text = ""
        self.lines: dict[KeyPath, int] = {}

    def pick(self, *choices: str) -> str:
        return self.data.draw(st.sampled_from(choices))

    def note(self, path: KeyPath) -> None:
        self.lines[path] = self.text.count("\n") + 1

    def key(self, key: str) -> str:
        bare = key.isascii() and key.replace("-", "a").isalnum()
        return key if bare and self.pick("bare", "quoted") == "bare" else json.dumps(key, ensure_ascii=False)

    def table(self, table: dict[str, object], path: KeyPath) -> None:
        self.text += self.pick("", "\n", "# [not] a = 'header'\n", "\t\n")
        later: list[tuple[str, object]] = []
        for key, value in table.items():
            if can_have_header(value) and self.pick("inline", "header") == "header":
                later.append((key, value))
            else:
                self.note((*path, key))
                self.text += f"{self.pick('', '  ')}{self.key(key)} = "
                self.value(value, (*path, key))
                self.text += self.pick("\n", ' # ] } "\n', "\r\n")
        for key, value in later:
            self.headers(key, value, (*path, key))

    def headers(self, key: str, value: object, path: KeyPath) -> None:
        name = ".".join(self.key(part) for part in path if isinstance(part, str))
        if isinstance(value, dict):
            self.note(path)
            self.text += f"[{name}]\n"
            self.table(value, path)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self.lines.setdefault(path, self.text.count("\n") + 1)
                self.note((*path, index))
                self.text += f"[[ {name} ]] # comment\n"
                self.table(item, (*path, index))

    def value(self, value: object, path: KeyPath) -> None:
        if isinstance(value, list):
            self.array(value, path)
        elif isinstance(value, dict):
            self.text += "{"
            for index, (key, entry) in enumerate(value.items()):
                self.text += ", " if index else " "
                self.note((*path, key))
                self.text += f"{self.key(key)} = "
                self.value(entry, (*path, key))
            self.text += " }"
        elif isinstance(value, str) and self.pick("one", "many") == "many":
            self.text += '"""\n' + json.dumps(value, ensure_ascii=False)[1:-1] + '\n"""'
        else:
            self.text += json.dumps(value, ensure_ascii=False)

    def array(self, items: list[object], path: KeyPath) -> None:
        self.text += "["
        for index, item in enumerate(items):
            self.text += self.pick("", " ", "\n  ", " # , ]\n")
            self.note((*path, index))
            self.value(item, (*path, index))
            self.text += self.pick(",", ",\n", "\n,")
        self.text += self.pick("]", "\n]")


def can_have_header(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


keys = st.text("abc-. \"'é#=", min_size=1, max_size=4)
scalars = st.integers(-9, 99) | st.booleans() | st.text("ab\"'\\#[]{}=\n, ", max_size=5)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)


@given(st.dictionaries(keys, values, max_size=4), st.data())
def test_the_lines_of_a_written_document_are_right(document: dict[str, object], data: st.DataObject) -> None:
    writer = Writer(data)
    writer.table(document, ())
    assert set(paths_of(tomllib.loads(writer.text))) == set(writer.lines)
    assert scan(writer.text) == writer.lines
