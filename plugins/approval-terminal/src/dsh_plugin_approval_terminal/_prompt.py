"""The talk with the person at the terminal, about one call."""

from __future__ import annotations

import os
import signal
from typing import Final

import trio
from dsh_hookspecs import AbortSignal, ApprovalOutcome

from dsh_plugin_approval_terminal._keys import read_key
from dsh_plugin_approval_terminal._question import Question, drawn
from dsh_plugin_approval_terminal._terminal import Terminal, open_terminal

_PROMPT: Final = "Allow it once? [y]es, [N]o, show [a]ll: "


async def ask_person(question: Question, call: AbortSignal, deadline: float) -> ApprovalOutcome:
    """Show the question and wait for a key. Cancelled, it says why and leaves the terminal as it was.

    Raises ``NoTerminalError`` if there is no terminal to ask at.
    """
    interrupted = False
    with open_terminal() as terminal:
        try:
            outcome = await _talk(terminal, question)
        except trio.Cancelled:
            terminal.add(f"- {_why_cancelled(call, deadline)}\n")
            raise
        except _InterruptedError:
            outcome, interrupted = "rejected", True
    if interrupted:
        # What Ctrl-C does at this terminal otherwise.
        os.killpg(os.getpgrp(), signal.SIGINT)
    return outcome


class _InterruptedError(Exception):
    """The answer was Ctrl-C."""


async def _talk(terminal: Terminal, question: Question) -> ApprovalOutcome:
    await terminal.write("\n" + drawn(question.short, terminal.looks))
    while True:
        terminal.forget_typed()
        await terminal.write(_PROMPT)
        key = read_key(await terminal.typed())
        if key == "all":
            await terminal.write("all\n" + drawn(question.whole, terminal.looks))
        elif key == "interrupt":
            terminal.add("no (interrupted)\n")
            raise _InterruptedError
        else:
            terminal.add("yes\n" if key == "yes" else "no\n")
            return "allowed-once" if key == "yes" else "rejected"


def _why_cancelled(call: AbortSignal, deadline: float) -> str:
    if call.aborted:
        return "the call was aborted"
    if trio.current_time() >= deadline:
        return "no answer in time"
    return "answered elsewhere, or no longer asked"
