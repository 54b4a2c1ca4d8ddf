"""What is shown of a request."""

from __future__ import annotations

from attrs import frozen
from dsh_hookspecs import ApprovalRequest, Context, HarnessError

from dsh_runtime import RequestText, describe_request

_RULE = "─" * 8


@frozen
class Question:
    """A request as the person at the terminal sees it: ``short`` at first, ``whole`` when they ask for it."""

    short: str
    whole: str


def question_of(ctx: Context, request: ApprovalRequest) -> Question:
    """The question, with secrets masked if there is a redactor."""
    owner, redact = _owner_of(ctx, request), ctx.get("redact")
    return Question(
        _text(describe_request(request, owner=owner, redact=redact)),
        _text(describe_request(request, owner=owner, redact=redact, whole=True)),
    )


def _text(parts: RequestText) -> str:
    return "".join(f"{line}\n" for line in (f"{_RULE} a tool call waits for your permission {_RULE}", *parts.lines()))


def _owner_of(ctx: Context, request: ApprovalRequest) -> str | None:
    try:
        owner: str | None = ctx.tools.owner(request.exec.name, request.exec.agent)
    except HarnessError:  # The agent's scope has gone.
        return None
    return owner
