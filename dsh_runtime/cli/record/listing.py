"""Sessions and calls as rows, and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict

from dsh_runtime.cli.output import Output
from dsh_runtime.cli.record.units import duration, local_time
from dsh_runtime.cli.text import one_line

if TYPE_CHECKING:
    from dsh_runtime.services.sessions.reading import CallFilter, CallInfo, SessionInfo

_SESSION_HEADER: Final = ("session", "started", "ended", "calls", "through", "label")
_CALL_HEADER: Final = ("call", "time", "tool", "outcome", "took")


def show_sessions(output: Output, sessions: Sequence[SessionInfo]) -> None:
    """Show sessions, the newest first."""
    if output.is_json:
        output.document([asdict(session) for session in sessions])
    elif not sessions:
        output.line("No session of a front door is in the log; --all shows those of processes, too.")
    else:
        output.table(_SESSION_HEADER, [_session_row(session) for session in sessions])


def show_calls(output: Output, calls: Sequence[CallInfo]) -> None:
    """Show calls, the newest first."""
    if output.is_json:
        output.document([asdict(call) for call in calls])
    elif not calls:
        output.line("No call in the log is like that.")
    else:
        output.table(_CALL_HEADER, [call_row(call) for call in calls])


def show_call_line(output: Output, call: CallInfo) -> None:
    """Show one call that has just ended, on a line of its own."""
    if output.is_json:
        output.text(_line(asdict(call)))
    else:
        output.line("  ".join(call_row(call)))


def matches(call: CallInfo, filter: CallFilter) -> bool:
    """Whether a filter lets a call through."""
    wanted = ((filter.session, call.session), (filter.tool, call.name), (filter.outcome, call.outcome))
    return all(want is None or want == has for want, has in (*wanted, (filter.code, call.code)))


def call_row(call: CallInfo) -> tuple[str, ...]:
    """A call as one row."""
    outcome = call.outcome if call.code is None or call.outcome == "interrupted" else call.code
    return (one_line(call.call_id), local_time(call.time), one_line(call.name), one_line(outcome), duration(call.ms))


def _session_row(session: SessionInfo) -> tuple[str, ...]:
    ended = "open" if session.ended is None else local_time(session.ended)
    if session.ending == "interrupted":
        ended += " (interrupted)"
    label = one_line(session.label)
    return (session.id, local_time(session.started), ended, str(session.calls), one_line(session.front_door), label)


def _line(document: dict[str, Any]) -> str:
    import json

    return json.dumps(document, ensure_ascii=False)
