"""What a client's own user is asked about a call, and what the answer means."""

from __future__ import annotations

from typing import Any, Final

from dsh_hookspecs import ApprovalOutcome, ApprovalRequest, Context, HarnessError
from mcp_types import ClientCapabilities, ElicitResult

from dsh_runtime import describe_request

ALLOW: Final = "allow once"
REJECT: Final = "reject"
_FIELD: Final = "decision"
#: Without a default: a form that is sent off as it came allows nothing.
FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {_FIELD: {"type": "string", "title": "Decision", "enum": [ALLOW, REJECT]}},
    "required": [_FIELD],
}


def can_be_asked(capabilities: ClientCapabilities | None) -> bool:
    """Whether a client shows forms to its user. One that names no mode does, as the protocol began with them."""
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def message_of(ctx: Context, request: ApprovalRequest) -> str:
    """The question, with secrets masked if there is a redactor."""
    try:
        owner = ctx.tools.owner(request.exec.name, request.exec.agent)
    except HarnessError:  # The session's scope has gone.
        owner = None
    text = describe_request(request, owner=owner, redact=ctx.get("redact"))
    return "\n".join(["A tool call waits for your permission. Allow it once?", *text.lines()])


def outcome_of(result: ElicitResult) -> ApprovalOutcome:
    """The outcome that an answer stands for. A form that does not plainly allow rejects."""
    if result.action == "cancel":
        return "cancelled"
    allowed = result.action == "accept" and result.content is not None and result.content.get(_FIELD) == ALLOW
    return "allowed-once" if allowed else "rejected"
