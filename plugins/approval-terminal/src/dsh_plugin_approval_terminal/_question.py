"""What is shown of a request."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen
from dsh_hookspecs import ApprovalRequest, Context, HarnessError

from dsh_plugin_approval_terminal._terminal import Looks
from dsh_runtime import RequestText, describe_request
from dsh_runtime.cards import to_terminal

_RULE = "─" * 8


@frozen
class Question:
    """A request as the person at the terminal sees it: ``short`` at first, ``whole`` when they ask for it."""

    short: RequestText
    whole: RequestText


def question_of(ctx: Context, request: ApprovalRequest) -> Question:
    """The question, with secrets masked if there is a redactor."""
    owner, redact = _owner_of(ctx, request), ctx.get("redact")
    return Question(
        describe_request(request, owner=owner, redact=redact),
        describe_request(request, owner=owner, redact=redact, whole=True),
    )


def drawn(text: RequestText, looks: Looks) -> str:
    """A text as it is shown at a terminal."""
    return "".join(f"{line}\n" for line in _lines(text, looks))


def _lines(text: RequestText, looks: Looks) -> Iterator[str]:
    yield f"{_RULE} a tool call waits for your permission {_RULE}"
    yield from text.heading()
    if text.card is not None:
        yield to_terminal(text.card, width=looks.width, colour=looks.colour).rstrip("\n")
    yield from text.ending()


def _owner_of(ctx: Context, request: ApprovalRequest) -> str | None:
    try:
        owner: str | None = ctx.tools.owner(request.exec.name, request.exec.agent)
    except HarnessError:  # The agent's scope has gone.
        return None
    return owner
