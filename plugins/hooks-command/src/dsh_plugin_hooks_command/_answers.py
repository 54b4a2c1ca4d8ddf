"""What a hook says: its exit code and its output, read as a decision.

=========  =======================================================================
exit code  meaning
=========  =======================================================================
0          stdout is empty or a JSON object; other text is passed over
2          no, and stderr says why
other      the hook has failed, which is no answer
=========  =======================================================================
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from attrs import frozen

from dsh_plugin_hooks_command._errors import HookCommandError

#: So much of what a hook says reaches a reason.
_REASON: Final = 4000
_NO: Final = 2


@frozen
class Output:
    """How a hook ended."""

    code: int
    stdout: bytes
    stderr: bytes


@frozen
class Before:
    """A hook's answer before a call."""

    decision: Literal["allow", "ask", "deny"]
    reason: str


@frozen
class After:
    """A hook's answer after a call: feedback that takes the place of the result, or a remark beside it."""

    feedback: str | None
    remark: str | None


def before(output: Output, subject: str) -> Before:
    """The decision about a call; :class:`HookCommandError` for what is none."""
    if output.code == _NO:
        return Before("deny", _text(output.stderr) or f"{subject} said no")
    answer = _document(output, subject)
    if answer.get("continue") is False:
        return Before("deny", _reason(answer, "stopReason", subject))
    own = _own(answer, subject)
    if "updatedInput" in own:
        raise HookCommandError(f"{subject} wants to change the arguments, which nobody can; let it deny instead")
    decision = own.get("permissionDecision", _modern(answer.get("decision")))
    if decision is None:
        return Before("allow", "")
    if decision not in ("allow", "ask", "deny"):
        raise HookCommandError(f"{subject} decided {decision!r:.100}; known are 'allow', 'ask' and 'deny'")
    reason = own.get("permissionDecisionReason", answer.get("reason"))
    return Before(decision, reason[:_REASON] if isinstance(reason, str) and reason else f"{subject} said {decision}")


def after(output: Output, subject: str) -> After:
    """What is to become of a result; :class:`HookCommandError` for what is no answer."""
    if output.code == _NO:
        return After(_text(output.stderr) or f"{subject} said no", None)
    answer = _document(output, subject)
    if answer.get("continue") is False:
        return After(_reason(answer, "stopReason", subject), None)
    decision = answer.get("decision")
    if decision not in (None, "block", "approve"):
        raise HookCommandError(f"{subject} decided {decision!r:.100}; known is 'block'")
    remark = _own(answer, subject).get("additionalContext")
    if remark is not None and not isinstance(remark, str):
        raise HookCommandError(f"{subject} gave an additionalContext that is no text")
    return After(_reason(answer, "reason", subject) if decision == "block" else None, remark)


def _modern(decision: Any) -> Any:
    """How older hooks say it."""
    return {"approve": "allow", "block": "deny"}.get(decision, decision) if isinstance(decision, str) else decision


def _document(output: Output, subject: str) -> dict[str, Any]:
    if output.code != 0:
        why = _text(output.stderr)
        raise HookCommandError(f"{subject} ended with code {output.code}{f': {why}' if why else ''}")
    text = output.stdout.strip()
    if not text.startswith(b"{"):
        return {}
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HookCommandError(f"{subject} printed something that begins like JSON and is none: {error}") from None
    return answer  # type: ignore[no-any-return]


def _own(answer: dict[str, Any], subject: str) -> dict[str, Any]:
    own = answer.get("hookSpecificOutput", {})
    if not isinstance(own, dict):
        raise HookCommandError(f"{subject} gave a hookSpecificOutput that is no object")
    return own


def _reason(answer: dict[str, Any], key: str, subject: str) -> str:
    reason = answer.get(key)
    return reason[:_REASON] if isinstance(reason, str) and reason else f"{subject} said no"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip()[:_REASON]
