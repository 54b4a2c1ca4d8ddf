"""Whatever a tool or a model writes: it is shown, it steers nothing, and it ends somewhere."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from dsh_hookspecs import (
    DiffResult,
    FileDiff,
    GenericCall,
    ReadLine,
    ReadResult,
    SearchFile,
    SearchMatch,
    SearchResult,
    TerminalCall,
    TerminalResult,
    WebSearchResult,
    WebSource,
)
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.cards import Bounds, Card, call_card, result_card, to_terminal, to_text, visible
from dsh_runtime.cards.model import text_of

ANYTHING = st.text(st.characters(codec=None), max_size=80)
STEERS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"]
HIDES = [
    *"\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2028\u2029\u2066\u2067\u2068\u2069",
    *"\u061c\ufeff\u00ad\U000e0041\u3164",
]


def everywhere(text: str) -> list[Card]:
    """Cards that show the text in every place that a view has."""
    return [
        call_card(GenericCall(text, raw_input={text: text, "all": [text] * 20}, content=[{"type": text, "uri": text}])),
        call_card(TerminalCall(title=text, description=text, cwd=text)),
        result_card(TerminalResult(title=text, output=text, signal=text)),
        result_card(DiffResult([FileDiff(text, text, text + "x")], title=text)),
        result_card(SearchResult("matches", True, 1, files=[SearchFile(text, [SearchMatch(1, text)])], title=text)),
        result_card(SearchResult("paths", True, 1, paths=[text])),
        result_card(ReadResult(text, 1, [ReadLine(1, text)], 1, lang=text)),
        result_card(WebSearchResult([WebSource(text, text, text, text)], True, text)),
    ]


def lines_of(card: Card) -> list[str]:
    """Every line of a card."""
    return [text_of(card.title), *(text_of(row.gutter) + text_of(row.body) for row in card.rows), text_of(card.status)]


@pytest.mark.parametrize("char", [*STEERS, *HIDES])
def test_what_steers_or_hides_is_written_out_everywhere(char: str) -> None:
    """In every member of every view."""
    for card in everywhere(f"a{char}b"):
        for line in lines_of(card):
            assert char not in line


@given(ANYTHING)
def test_any_text_can_be_drawn_and_encoded(text: str) -> None:
    """Lone surrogates included; a row is one line."""
    for card in everywhere(text):
        assert all("\n" not in line for line in lines_of(card))
        to_text(card).encode()
        to_terminal(card, width=40, colour=True).encode()


def test_markup_emoji_codes_and_links_are_text() -> None:
    """rich interprets none of them."""
    text = "[bold red]x[/] :smile: [link=https://evil]y[/link] https://example.org"
    drawn = to_terminal(call_card(GenericCall(title=text)), width=100, colour=True)
    assert text in drawn
    assert "\x1b]8" not in drawn


def test_the_only_escape_sequences_are_colours_of_our_own() -> None:
    """Those of the text are written out."""
    import re

    for card in everywhere("\x1b[2J\x1b]52;c;AAAA\x07"):
        rest = re.sub(r"\x1b\[[0-9;]*m", "", to_terminal(card, width=80, colour=True))
        assert "\x1b" not in rest


def test_ordinary_text_of_all_scripts_stays() -> None:
    """Joiners where scripts and emoji need them, variation selectors, accents."""
    for text in ("naïve façade", "漢字", "می\u200cخواهم", "👩\u200d💻 ❤\ufe0f", "e\u0301", "a\tb", "x\u00a0y"):
        assert visible(text) == text


def test_a_joiner_between_ascii_letters_is_written_out() -> None:
    """There it only hides."""
    assert visible("pass\u200dword") == "pass\\u200dword"


def test_a_pile_of_marks_is_written_out_from_the_fifth_on() -> None:
    """It would reach into other lines."""
    assert visible("a" + "\u0301" * 6) == "a" + "\u0301" * 4 + "\\u0301" * 2


def test_rows_columns_and_bytes_are_bounded_and_what_is_cut_is_counted() -> None:
    """Each with a note, and the card says that it is not whole."""
    many = call_card(GenericCall("t", raw_input={"x": "line\n" * 50}), bounds=Bounds(lines=10))
    assert (len(many.rows), many.whole) == (11, False)
    assert text_of(many.rows[-1].body) == "… 42 more lines"
    long = call_card(GenericCall("t", content=[{"type": "text", "text": "x" * 90}]), bounds=Bounds(columns=40))
    assert (text_of(long.rows[0].body), long.whole) == ("x" * 40 + " … 50 more characters", False)
    big = call_card(GenericCall("t", content=[{"type": "text", "text": "12345678\n" * 50}]), bounds=Bounds(bytes=95))
    assert [text_of(row.body) for row in big.rows[-2:]] == ["12345678", "… 40 more lines"]
    whole = call_card(GenericCall("t", raw_input={"x": "line\n" * 5}))
    assert whole.whole


def test_of_an_output_the_beginning_and_the_end_are_kept() -> None:
    """Errors stand last."""
    card = result_card(TerminalResult(output="".join(f"{n}\n" for n in range(1000))), bounds=Bounds(lines=8))
    assert [text_of(row.body) for row in card.rows] == ["0", "1", "2", "… 994 lines left out …", "997", "998", "999"]
    assert not card.whole


def test_a_long_line_in_an_output_does_not_push_out_its_end() -> None:
    """The bytes are shared by both halves."""
    output = "\n".join(["x" * 400] * 200 + ["the error"])
    card = result_card(TerminalResult(output=output))
    assert text_of(card.rows[-1].body) == "the error"
    assert sum(len(line) for line in lines_of(card)) < 40_000


@pytest.mark.parametrize("bad", [0, -1])
def test_a_bound_is_a_count_above_zero(bad: int) -> None:
    """A card without rows would hide what it is about."""
    with pytest.raises(ValueError, match="counts above 0"):
        Bounds(lines=bad)


def numbered(end: str) -> str:
    """Thousands of lines."""
    return "".join(f"{number}{end}" for number in range(9_000))


@pytest.mark.parametrize(
    "make",
    [
        lambda: call_card(GenericCall("t", raw_input={"x": "y" * 30_000_000})),
        lambda: result_card(TerminalResult(output="x\n" * 3_000_000, exit_code=0)),
        lambda: result_card(DiffResult([FileDiff("f", "a\n" * 40_000, "a\nb\n" * 20_000)])),
        lambda: result_card(DiffResult([FileDiff("f", numbered("\n"), numbered("x\n"))])),
        lambda: call_card(GenericCall("t", raw_input=[[[1] * 1000] * 1000] * 1000)),
        lambda: result_card(SearchResult("paths", False, 1, paths=["p"] * 1_000_000)),
    ],
    ids=["one line", "many lines", "repeating diff", "large diff", "wide value", "many paths"],
)
def test_size_costs_little(make: Any) -> None:
    """What is not shown is not made."""
    began = time.perf_counter()
    card = make()
    to_terminal(card, width=80)
    assert time.perf_counter() - began < 5
    assert not card.whole


def test_a_value_that_is_no_json_is_shown_as_far_as_it_goes() -> None:
    """A circle, a depth without end, an object, a key that is no text."""
    circle: list[Any] = [1]
    circle.append(circle)
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = [deep]
    values: list[Any] = [circle, deep, {"x": {(1, 2): 3, "y": [1]}}]
    for value in values:
        card = call_card(GenericCall("t", raw_input=value))
        assert not card.whole
    thing: Any = object()
    assert "<object>" in to_text(call_card(GenericCall("t", raw_input={"x": [thing]})))


def test_texts_and_numbers_can_be_told_apart() -> None:
    """By their quotes; a key that could pass for more than a key has quotes, too."""
    text = to_text(call_card(GenericCall("t", raw_input={"a": "3", "b": 3, "c: d": None})))
    assert text == 't\na: "3"\nb: 3\n"c: d": null\n'
    assert json.loads(text.splitlines()[1].removeprefix("a: ")) == "3"
