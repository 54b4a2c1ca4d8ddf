"""The calls that are made again after every reload."""

from __future__ import annotations

import contextlib
import logging
import shlex
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import frozen
from dsh_hookspecs import AbortController, AbortSignal

from dsh_runtime.cli.arguments import Pair, build_arguments, split_pairs
from dsh_runtime.cli.call import parameters_of
from dsh_runtime.cli.errors import CliError, error_lines
from dsh_runtime.cli.results import content_text, failure_line
from dsh_runtime.cli.session import call_tool
from dsh_runtime.core.effects import may_be_the_users
from dsh_runtime.loader.blame import place_of, summary_of
from dsh_runtime.loader.host import remedy_for

if TYPE_CHECKING:
    from dsh_runtime.cli.running import Interruption
    from dsh_runtime.loader.host import Host

MAX_CALLS: Final = 20


@frozen
class WantedCall:
    """A call as it was typed."""

    text: str
    tool: str
    pairs: tuple[Pair, ...]


@frozen
class Outcome:
    """What came of a call: the content, or what went wrong."""

    call: WantedCall
    text: str
    ok: bool
    milliseconds: float


@frozen
class _Told:
    """What stops a call: whoever started it, or the end of the command."""

    signal: AbortSignal


class _Raised(logging.Handler):
    """Hears what a tool or a listener has raised: a result has the message, and not the place."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the error of a record."""
        if record.exc_info is not None and record.exc_info[1] is not None:
            self._error = record.exc_info[1]

    def place(self) -> str:
        """Where it was raised, as the end of a line."""
        place = place_of(self._error) if self._error is not None else None
        return f" ({place})" if place is not None else ""


@contextlib.contextmanager
def _listening() -> Iterator[_Raised]:
    log, raised = logging.getLogger("dsh.tools"), _Raised()
    level = log.level
    log.addHandler(raised)
    log.setLevel(min(logging.INFO, log.getEffectiveLevel()))
    try:
        yield raised
    finally:
        log.setLevel(level)
        log.removeHandler(raised)


def read_calls(texts: tuple[str, ...]) -> list[WantedCall]:
    """Take ``'greet name=Ada'`` apart, as a shell would."""
    if len(texts) > MAX_CALLS:
        raise CliError(f"--call is given {len(texts)} times; at most {MAX_CALLS} calls are repeated")
    return [_read(text) for text in texts]


def _read(text: str) -> WantedCall:
    try:
        tool, *words = shlex.split(text)
    except ValueError as error:
        if not text.strip():
            raise CliError("--call is empty; write it as --call 'greet name=Ada'") from None
        raise CliError(f"--call {text!r} cannot be read: {str(error).lower()}; write it as on a command line") from None
    return WantedCall(text, tool, tuple(split_pairs(words)))


class RepeatedCalls:
    """Makes its calls, one after the other, whenever it is asked; what is under way from before is stopped."""

    def __init__(
        self, host: Host, calls: list[WantedCall], interruption: Interruption, tell: Callable[[Outcome], None]
    ) -> None:
        self._host = host
        self._calls = calls
        self._interruption = interruption
        self._tell = tell
        self._wanted = trio.Event()
        self._stop: AbortController | None = None

    def again(self) -> None:
        """Make the calls, from the first one on."""
        if self._stop is not None:
            self._stop.abort("a newer version is there")
        self._wanted.set()

    async def run(self) -> None:
        """Make calls when they are wanted, until cancelled."""
        while self._calls:
            await self._wanted.wait()
            self._wanted = trio.Event()
            self._stop = AbortController()
            for call in self._calls:
                outcome = await self._make(call, self._stop.signal)
                if self._stop.signal.aborted:
                    break
                self._tell(outcome)

    async def _make(self, call: WantedCall, stop: AbortSignal) -> Outcome:
        began = time.perf_counter()
        told: Any = _Told(AbortSignal.any([stop, self._interruption.signal]))
        try:
            parameters = parameters_of(self._host, call.tool)
            arguments = build_arguments({}, call.pairs, parameters, call.tool)
            with _listening() as raised:
                result = await call_tool(self._host, call.tool, arguments, told)
        except CliError as error:
            return Outcome(call, "; ".join(error_lines(error)), False, 0.0)
        except KeyboardInterrupt as error:  # The user's own is a signal here, which raises nothing.
            if may_be_the_users():
                raise
            text = f"{summary_of(error)} was raised at {place_of(error)}{remedy_for(error)}"
            return Outcome(call, text, False, 0.0)
        took = (time.perf_counter() - began) * 1_000
        redact = self._host.ctx.get("redact")
        mask = str if redact is None else redact.text
        if result.is_error:
            return Outcome(call, mask(failure_line(call.tool, result) + raised.place()), False, took)
        return Outcome(call, mask(content_text(result.content)), True, took)
