"""From views to cards: the call's card, the result's card that takes its place, and the card of a question."""

from __future__ import annotations

from typing import Any, Final

from dsh_hookspecs import (
    ApprovalRequest,
    Content,
    DiffCall,
    DiffResult,
    GenericCall,
    GenericResult,
    ReadResult,
    SearchResult,
    TerminalCall,
    TerminalResult,
    ToolCallView,
    ToolResultView,
    WebFetchResult,
    WebSearchResult,
)

from dsh_runtime.cards import files, generic, search, terminal, web
from dsh_runtime.cards.draft import Draft, finish, joined
from dsh_runtime.cards.lines import text_rows
from dsh_runtime.cards.model import Bounds, Card, Row, Span, note
from dsh_runtime.cards.page import lay_out, safe_line

BOUNDS: Final = Bounds()
_DIGEST_SHOWN: Final = 16
_WARNING: Final = note("Not everything is shown; look at the arguments before you allow this.", cut=True)


def call_card(view: ToolCallView, *, bounds: Bounds = BOUNDS) -> Card:
    """The card of a pending call."""
    return finish(_draft_call(view), bounds)


def result_card(
    view: ToolResultView | None,
    *,
    pending: ToolCallView | None = None,
    content: Content = (),
    is_error: bool = False,
    bounds: Bounds = BOUNDS,
) -> Card:
    """The card that takes the place of the pending one.

    Without a ``view``, or without a title of its own, the pending title stays; ``content`` is the result's raw content,
    shown where there is no view, or one that is not known here.
    """
    own, kept = _title_of(view), _title_of(pending)
    title = own if own is not None else kept or ""
    draft = _draft_result(GenericResult() if view is None else view, title, pending, content, bounds)
    status = joined(Span("failed", "bad"), *draft.status) if is_error else draft.status
    return finish(Draft(draft.card, draft.title, draft.rows, status, draft.prompt), bounds)


def approval_card(request: ApprovalRequest, *, bounds: Bounds = BOUNDS) -> Card:
    """The card of a question to a person: the tool and the reason, then what the call would do.

    The tool's name is the host's, whatever title the tool gives itself. A card that is not ``whole`` says so.
    """
    view = request.view
    if view is None:
        view = GenericCall(title=request.exec.name, raw_input=request.exec.arguments)
    call = call_card(view, bounds=bounds)
    reason, reason_is_whole = lay_out(text_rows(request.reason or "", prose=True), bounds)
    question = (Span("allow ", "note"), Span(request.exec.name, "title"), Span("?", "note"))
    title, title_is_whole = safe_line(question, bounds.columns)
    whole = call.whole and reason_is_whole and title_is_whole
    digest = joined(f"digest {request.digest[:_DIGEST_SHOWN]}" if request.digest else None)
    rows = (*reason, Row(call.title), *call.rows, *(() if whole else (_WARNING,)))
    return Card(call.card, title, rows, safe_line(digest, bounds.columns)[0], whole)


def _draft_call(view: Any) -> Draft:
    match view:
        case GenericCall():
            return generic.draft_call(view)
        case TerminalCall():
            return terminal.draft_call(view)
        case DiffCall():
            return files.draft_change(view)
    return generic.draft_unknown_call(_tag_of(view), _title_of(view) or "")


def _draft_result(view: Any, title: str, pending: Any, content: Content, bounds: Bounds) -> Draft:
    match view:
        case GenericResult():
            return generic.draft_result(view, title, content)
        case TerminalResult():
            prompt = terminal.PROMPT if view.title is None and isinstance(pending, TerminalCall) else ""
            return terminal.draft_result(view, title, prompt, bounds)
        case DiffResult():
            return files.draft_changed(view, title)
        case SearchResult():
            return search.draft_found(view, title)
        case ReadResult():
            return files.draft_window(view, title)
        case WebSearchResult():
            return web.draft_search(view, title)
        case WebFetchResult():
            return web.draft_fetch(view, title)
    return generic.draft_unknown(_tag_of(view), title, content)


def _title_of(view: Any) -> str | None:
    title = getattr(view, "title", None)
    return title if isinstance(title, str) else None


def _tag_of(view: Any) -> str:
    tag = getattr(view, "card", None)
    return tag if isinstance(tag, str) else "generic"
