"""One call as a person at a terminal sees it: its card, a bar while it runs, the card of its result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from dsh_hookspecs import GenericResult, ToolExecution, ToolExecutionResult, ToolProgress

from dsh_runtime.cards import Bounds, Card, call_card, drawing, masked, progress_line, result_card
from dsh_runtime.cli.errors import complain
from dsh_runtime.cli.output import Output
from dsh_runtime.cli.results import failure_line, own_feedback
from dsh_runtime.tools.presentation import DurableResult, present_call, present_result

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host

_BOUNDS: Final = Bounds(lines=400, columns=2_000, bytes=128 * 1024)
_PROGRESS_SECONDS: Final = 0.1


class CallScreen:
    """Shows one call; secrets are masked where the host has a redactor."""

    def __init__(self, output: Output, host: Host, name: str, arguments: Any) -> None:
        self._output = output
        self._host = host
        self._name = name
        self._definition = host.ctx.tools.get(name)
        self._redact: Any = host.ctx.get("redact")
        # Views are made of what is masked: one may say what an argument holds without its telling name.
        self._arguments = self._masked_value(arguments)
        self._pending = self._masked(present_call(self._definition, _execution(name, self._arguments)))
        self._next_progress = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Show the call's card, and how far it comes meanwhile."""
        self._show(call_card(self._pending, bounds=_BOUNDS))
        undo = self._host.ctx.on("tools/progress", self._progress)
        try:
            yield
        finally:
            undo()
            self._output.status("")

    def _progress(self, exec: ToolExecution, progress: ToolProgress) -> None:
        now = time.monotonic()
        if exec.parent is None and now >= self._next_progress:
            self._next_progress = now + _PROGRESS_SECONDS
            self._output.status(progress_line(self._masked_progress(progress), width=self._output.width))

    def show_result(self, result: ToolExecutionResult) -> None:
        """Show the card of the result; of a failure its line, and a card where the tool has one for it."""
        content, meta = self._masked_value(result.content), self._masked_value(result.meta)
        view = present_result(self._definition, self._arguments, DurableResult(content, result.is_error, meta))
        if result.is_error:
            complain(self._masked_text(failure_line(self._name, result)))
            if isinstance(view, GenericResult):
                self._output.text(self._masked_text(own_feedback(result)))
                return
        shown = self._masked(view)
        self._show(result_card(shown, pending=self._pending, is_error=result.is_error, bounds=_BOUNDS))

    def _show(self, card: Card) -> None:
        self._output.show(drawing(card))
        if not card.whole:
            self._output.line(("Not everything is shown; --output plain shows it as it is.", "dim"))

    def _masked(self, view: Any) -> Any:
        return view if self._redact is None else masked(view, self._redact.value)

    def _masked_value(self, value: Any) -> Any:
        return value if self._redact is None else self._redact.value(value)

    def _masked_text(self, text: str) -> str:
        return text if self._redact is None else str(self._redact.text(text))

    def _masked_progress(self, progress: ToolProgress) -> ToolProgress:
        if self._redact is None or progress.message is None:
            return progress
        return ToolProgress(progress.done, progress.total, self._redact.text(progress.message))


def _execution(name: str, arguments: Any) -> Any:
    """As much of a call as its view needs, before there is one."""
    return SimpleNamespace(name=name, arguments=arguments)


def can_be_shown(host: Host, name: str, arguments: Any) -> bool:
    """Whether the arguments are such that the tool can say what it would do with them."""
    check = host.ctx.tools.get(name).check
    return check is None or not check.compiled.explain_arguments(arguments)
