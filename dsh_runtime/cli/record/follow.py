"""Calls as they end, whichever process makes them."""

from __future__ import annotations

from pathlib import Path

import trio

from dsh_runtime.cli.output import Output
from dsh_runtime.cli.record.listing import matches, show_call_line
from dsh_runtime.cli.record.source import telling_trouble
from dsh_runtime.services.sessions.events import TOOL_RESULT
from dsh_runtime.services.sessions.follow import Follower
from dsh_runtime.services.sessions.reading import CallFilter, CallInfo, Reader


async def follow_calls(output: Output, path: Path, filter: CallFilter) -> None:
    """Show the newest calls that have ended, then every further one, until the process is told to stop."""
    with telling_trouble(), Reader(path) as reader:
        last = reader.last_id()
        ended = [call for call in reversed(reader.calls(filter)) if call.outcome != "open"]
        for call in ended:
            show_call_line(output, call)
        shown = {_place(call) for call in ended}
        async with Follower(path, after=last) as events:
            async for event in events:
                if event.type != TOOL_RESULT or event.call is None:
                    continue
                call = (await trio.to_thread.run_sync(reader.call_at, event.session, event.call)).info
                if matches(call, filter) and _place(call) not in shown:
                    show_call_line(output, call)


def _place(call: CallInfo) -> tuple[str, int]:
    return (call.session, call.seq)
