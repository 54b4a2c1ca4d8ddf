"""Views as JSON, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dsh_hookspecs import (
    DiffCall,
    DiffResult,
    FileDiff,
    FileLocation,
    GenericCall,
    GenericResult,
    JsonValueError,
    ReadLine,
    ReadResult,
    SearchFile,
    SearchMatch,
    SearchResult,
    TerminalCall,
    TerminalResult,
    WebFetchResult,
    WebSearchResult,
    WebSource,
)
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.cards import ViewError, masked, view_from_json, view_to_json

TEXT = [{"type": "text", "text": "x"}]
VIEWS: list[Any] = [
    GenericCall(title="t"),
    GenericCall("t", "read", {"a": [1, 2.5, None]}, TEXT, locations=[FileLocation("a", 3), FileLocation("b")]),
    TerminalCall("ls"),
    TerminalCall("ls", "why", "/"),
    DiffCall("t", [FileDiff("a", None, "x"), FileDiff("b", "", "y")], locations=[FileLocation("a")]),
    GenericResult(),
    GenericResult("t", []),
    TerminalResult(),
    TerminalResult("t", "", 0, "SIGTERM"),
    DiffResult([], title="t"),
    SearchResult("matches", False, 0),
    SearchResult("matches", True, 9, files=[SearchFile("a", [SearchMatch(1, "x")]), SearchFile("b", [])]),
    SearchResult("paths", True, 9, paths=["a", "b"], title=""),
    ReadResult("a", 9, [], 3),
    ReadResult("a", 1, [ReadLine(1, "x")], 3, "t", "python", TEXT),
    WebSearchResult([WebSource("u", "t", "s", "d"), WebSource("u")], False, "a", "t"),
    WebFetchResult("u", 200, True),
]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: type(view).__name__)
def test_a_view_comes_back_as_it_was(view: Any) -> None:
    """Through JSON text."""
    document = view_to_json(view)
    assert view_from_json(json.loads(json.dumps(document))) == view
    state = "pending" if "Call" in type(view).__name__ else "completed"
    assert (document["card"], document["state"]) == (view.card, state)


def test_defaults_are_left_out() -> None:
    """A log holds many of these."""
    assert view_to_json(TerminalCall("ls")) == {"state": "pending", "card": "terminal", "title": "ls"}
    assert view_to_json(WebFetchResult("u", 200, False)) == {
        "state": "completed", "card": "web", "kind": "fetch", "url": "u", "status_code": 200, "truncated": False,
    }  # fmt: skip


def test_a_view_that_json_cannot_carry_is_refused_with_the_place() -> None:
    """Views take any object as raw input."""
    with pytest.raises(JsonValueError, match="raw_input"):
        view_to_json(GenericCall("t", raw_input={"x": float("nan")}))
    with pytest.raises(JsonValueError, match="title"):
        view_to_json(TerminalCall("\udc80"))


def test_what_is_no_view_is_refused() -> None:
    """A part of a view, say."""
    with pytest.raises(ViewError, match="FileDiff is none of the views"):
        view_to_json(FileDiff("a", None, ""))  # type: ignore[arg-type]


FOUND = {"state": "completed", "card": "search", "truncated": True, "total": 1}
BAD: list[tuple[Any, str]] = [
    (None, "must be an object, not NoneType"),
    ([], "must be an object, not list"),
    ({}, "without state and card"),
    ({"state": "pending", "card": "search"}, "no view is state 'pending', card 'search'; known are pending: generic"),
    ({"state": [], "card": {}}, "no view is"),
    ({"state": "completed", "card": "web"}, "no view is state 'completed', card 'web'"),
    ({"state": "pending", "card": "terminal"}, "view.title: is missing"),
    ({"state": "pending", "card": "terminal", "title": 3}, "'title' must be <class 'str'>"),
    ({"state": "pending", "card": "terminal", "title": "t", "exit": 1}, "view.exit: is not known; a TerminalCall has"),
    ({"state": "pending", "card": "diff", "title": "t", "diffs": {}}, "view.diffs: must be an array, not dict"),
    ({"state": "pending", "card": "diff", "title": "t", "diffs": [7]}, r"view.diffs\[0\]: must be an object, not int"),
    ({"state": "completed", "card": "terminal", "exit_code": True}, "view.exit_code: must be a number, not a boolean"),
    ({**FOUND, "shape": "paths", "paths": "ab"}, "must be an array"),
    ({**FOUND, "shape": "tree"}, "'shape' must be in"),
    ({"state": "completed", "card": "read", "path": "a", "offset": 0, "lines": [], "total_lines": 1}, "'offset'"),
    ({"state": "pending", "card": "generic", "title": "t", "kind": "dance"}, "'kind' must be in"),
    ({"state": "pending", "card": "generic", "title": "t", "content": [{}]}, "blocks that each have a 'type'"),
]


@pytest.mark.parametrize(("document", "message"), BAD)
def test_a_document_that_is_no_view_is_refused_with_the_place(document: Any, message: str) -> None:
    """A log may have been written by another version, or by hand."""
    with pytest.raises(ViewError, match=message):
        view_from_json(document)


def test_everything_that_is_wrong_is_told() -> None:
    """With its path."""
    files = [{"path": "a", "matches": [{"line_number": 0, "line": "x"}, {"line": 1}]}]
    document = {**FOUND, "shape": "matches", "files": files}
    with pytest.raises(ViewError) as refused:
        view_from_json({**document, "more": 1})
    assert [violation.path for violation in refused.value.violations] == [
        "view.more", "view.files[0].matches[0]", "view.files[0].matches[1].line_number",
    ]  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["state", "card", "kind", "title", "diffs", "lines", "paths", "path", "offset", "total", "url"])
TAGS = st.sampled_from(["pending", "completed", "generic", "terminal", "diff", "search", "read", "web", "fetch"])


@given(st.dictionaries(NAMES, JSON | TAGS, max_size=9) | JSON)
def test_any_document_is_a_view_or_is_refused(document: Any) -> None:
    """Nothing else is raised; what is taken comes back the same."""
    try:
        view = view_from_json(document)
    except ViewError:
        return
    assert view_from_json(view_to_json(view)) == view


def hide(value: Any) -> Any:
    """A mask as a redactor has it."""
    if isinstance(value, str):
        return value.replace("s3cret", "***")
    if isinstance(value, dict):
        return {key: hide(member) for key, member in value.items()}
    return [hide(item) for item in value] if isinstance(value, list) else value


def test_secrets_are_masked_in_every_member() -> None:
    """And the view stays one of its kind."""
    view = DiffCall("set s3cret", [FileDiff("s3cret.txt", None, "a s3cret b")], locations=[FileLocation("s3cret.txt")])
    shown = masked(view, hide)
    assert shown == DiffCall("set ***", [FileDiff("***.txt", None, "a *** b")], locations=[FileLocation("***.txt")])
    web = WebFetchResult("https://s3cret", 200, False)
    assert masked(web, hide) == WebFetchResult("https://***", 200, False)


def test_a_view_that_cannot_be_masked_is_not_shown() -> None:
    """Neither one that is no JSON, nor one whose mask makes it no view."""
    for view in (GenericCall("s3cret", raw_input=object()), GenericCall("s3cret")):  # type: ignore[arg-type]
        shown = masked(view, lambda value: 7)
        assert "s3cret" not in repr(shown)
        assert "could not be masked" in shown.title
    completed: Any = masked(TerminalResult("s3cret"), lambda value: [])
    assert completed == GenericResult("(not shown: its secrets could not be masked)", [])
