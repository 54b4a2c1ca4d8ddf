"""Views as JSON, for logs and replay.

A document says whether its view is ``pending`` or ``completed`` and which ``card`` it is (a ``web`` card has its
``kind``, too); the members follow under their own names, those with their default left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from attrs import NOTHING, Attribute, fields
from dsh_hookspecs import (
    DiffCall,
    DiffResult,
    FileDiff,
    FileLocation,
    GenericCall,
    GenericResult,
    HarnessError,
    JsonValue,
    ReadLine,
    ReadResult,
    SearchFile,
    SearchMatch,
    SearchResult,
    TerminalCall,
    TerminalResult,
    ToolCallView,
    ToolResultView,
    Violation,
    WebFetchResult,
    WebSearchResult,
    WebSource,
)

from dsh_runtime.values import snapshot_json

_PENDING: Final = (GenericCall, TerminalCall, DiffCall)
_COMPLETED: Final = (
    GenericResult, TerminalResult, DiffResult, SearchResult, ReadResult, WebSearchResult, WebFetchResult
)  # fmt: skip
#: The members that hold a list, and what its items are; the names mean the same in every view.
_ITEMS: Final[dict[str, type[Any]]] = {
    "locations": FileLocation,
    "diffs": FileDiff,
    "lines": ReadLine,
    "files": SearchFile,
    "matches": SearchMatch,
    "sources": WebSource,
    "paths": str,
}


class ViewError(HarnessError):
    """A document is no view; ``violations`` lists every place."""

    default_code = "INVALID_VIEW"

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("this is no view: " + "; ".join(map(str, violations)))
        self.violations = tuple(violations)


def view_to_json(view: ToolCallView | ToolResultView) -> dict[str, JsonValue]:
    """The view as lossless JSON; :class:`JsonValueError` if it holds something that JSON cannot carry."""
    for state, classes in (("pending", _PENDING), ("completed", _COMPLETED)):
        if type(view) in classes:
            return cast("dict[str, JsonValue]", snapshot_json({"state": state, **_tags(type(view)), **_members(view)}))
    raise ViewError([Violation("view", f"a {type(view).__name__} is none of the views; give one of dsh_hookspecs")])


def view_from_json(document: Any) -> ToolCallView | ToolResultView:
    """The view that a document stands for; :class:`ViewError` lists everything that is wrong with it."""
    violations: list[Violation] = []
    if isinstance(document, Mapping):
        cls = _class_of(document)
        if cls is not None:
            tags = {"state", *_tags(cls)}
            members = {key: value for key, value in document.items() if key not in tags}
            view = _build(cls, members, "view", violations)
            if not violations:
                return cast("ToolCallView | ToolResultView", view)
    if not violations:
        violations.append(Violation("view", _no_class(document)))
    raise ViewError(violations)


def _tags(cls: Any) -> dict[str, str]:
    """The tags that tell a view's class from the others of its state."""
    return {"card": cls.card, **({"kind": cls.kind} if cls.card == "web" else {})}


def _class_of(document: Mapping[str, Any]) -> Any:
    classes = {"pending": _PENDING, "completed": _COMPLETED}.get(_text(document.get("state")), ())
    for cls in classes:
        if all(document.get(key) == tag for key, tag in _tags(cls).items()):
            return cls
    return None


def _no_class(document: Any) -> str:
    if not isinstance(document, Mapping):
        return f"must be an object, not {type(document).__name__}"
    tags = ", ".join(f"{key} {document.get(key)!r:.40}" for key in ("state", "card", "kind") if key in document)
    known = "; ".join(
        f"{state}: {', '.join(dict.fromkeys(cls.card for cls in classes))}"
        for state, classes in (("pending", _PENDING), ("completed", _COMPLETED))
    )
    return f"no view is {tags or 'without state and card'}; known are {known}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _members(view: Any) -> dict[str, Any]:
    return {
        attribute.name: _plain(value)
        for attribute in fields(type(view))
        if (value := getattr(view, attribute.name)) != attribute.default
    }


def _plain(value: Any) -> Any:
    if type(value) in _ITEMS.values() and not isinstance(value, str):
        return _members(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _build(cls: Any, document: Any, path: str, violations: list[Violation]) -> Any:
    """An instance of ``cls``; ``None`` if the document does not hold, with what is wrong in ``violations``."""
    if not isinstance(document, Mapping):
        violations.append(Violation(path, f"must be an object, not {type(document).__name__}"))
        return None
    before = len(violations)
    violations.extend(_wrong_names(cls, document, path))
    known = {attribute.name: attribute for attribute in fields(cls)}
    members = {
        name: _member(known[name], value, f"{path}.{name}", violations)
        for name, value in document.items()
        if name in known
    }
    if len(violations) > before:
        return None
    try:
        return cls(**members)
    except (TypeError, ValueError) as error:
        violations.append(Violation(path, str(error.args[0]) if error.args else str(error)))
        return None


def _wrong_names(cls: Any, document: Mapping[str, Any], path: str) -> Iterator[Violation]:
    known = {attribute.name: attribute for attribute in fields(cls)}
    for name, attribute in known.items():
        if attribute.default is NOTHING and name not in document:
            yield Violation(f"{path}.{name}", "is missing")
    for name in document:
        if name not in known:
            yield Violation(f"{path}.{name!s:.40}", f"is not known; a {cls.__name__} has {', '.join(known)}")


def _member(attribute: Attribute[Any], value: Any, path: str, violations: list[Violation]) -> Any:
    item = _ITEMS.get(attribute.name)
    if item is None:
        if type(value) is bool and "int" in str(attribute.type):
            violations.append(Violation(path, "must be a number, not a boolean"))
        return value
    if not isinstance(value, (list, tuple)):
        violations.append(Violation(path, f"must be an array, not {type(value).__name__}"))
        return ()
    if item is str:
        return value
    return [_build(item, entry, f"{path}[{index}]", violations) for index, entry in enumerate(value)]
