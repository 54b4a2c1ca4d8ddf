"""Views with their secrets masked, before anything is drawn or written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from dsh_hookspecs import GenericCall, GenericResult, HarnessError, JsonValue, ToolCallView, ToolResultView

from dsh_runtime.cards.stored import view_from_json, view_to_json

V = TypeVar("V", bound=ToolCallView | ToolResultView)
_TAGS = ("state", "card")


def masked(view: V, mask: Callable[[JsonValue], JsonValue]) -> V:
    """The view with ``mask`` applied to all that it holds; a view that cannot be masked shows nothing of itself."""
    try:
        document = view_to_json(view)
        tags = {key: document[key] for key in _TAGS}
        members = mask({key: value for key, value in document.items() if key not in _TAGS})
        changed = view_from_json({**members, **tags}) if isinstance(members, dict) else None
    except HarnessError:
        changed = None
    return cast("V", changed if changed is not None else _nothing_of(view))


def _nothing_of(view: ToolCallView | ToolResultView) -> ToolCallView | ToolResultView:
    text = "(not shown: its secrets could not be masked)"
    if isinstance(view, ToolCallView):
        return GenericCall(title=text)
    return GenericResult(title=text, content=[])
