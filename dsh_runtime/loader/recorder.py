"""The host's own record: the session log, mounted in front of what the config names.

It stands first, so that it is there before any call and goes after the last one. Where it cannot be opened the host
does not start; where it cannot write any more, calls are refused.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen
from dsh_hookspecs import JsonValue, ToolExecution, ToolExecutionResult

from dsh_runtime.loader.model import HostConfig
from dsh_runtime.loader.record import log_file
from dsh_runtime.loader.views import views_of
from dsh_runtime.services.sessions import Sessions, SessionsConfig

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context
    from dsh_runtime.services.sessions.journal import Journal
    from dsh_runtime.tools.call import Call


_REDACT: Final = "redact"
_WITHHELD: Final = "[withheld: the redactor is still to come]"
#: What says who did something, in a payload.
_NAMES: Final = frozenset({"agent", "call_id", "label", "name", "parent", "root"})


class HostSessions(Sessions):
    """The session log of a host: it keeps views, and looks for the redactor when it writes.

    A log that injected the redactor would have to be opened again whenever that comes or goes.
    """

    inject = {"tools": True}  # noqa: RUF012  # the base class declares it
    Config: Any = None  # the instance has it already

    def redactor(self) -> LateRedactor:
        """What masks every record."""
        self._redact = LateRedactor(self.ctx)
        return self._redact

    def recorder(self, journal: Journal) -> Recorder:
        """What the pipeline tells of its calls."""
        return Recorder(journal, self.ctx.tools.machine.calls, self._redact)


def host_sessions(config: HostConfig) -> HostSessions:
    """The session log that a config asks for, as a plugin."""
    settings = config.host.log
    return HostSessions(
        SessionsConfig(
            path=str(log_file(config)),
            sync=settings.sync,
            max_event_bytes=settings.max_event_bytes,
            keep_days=settings.keep_days,
            max_bytes=settings.max_bytes,
        )
    )


class LateRedactor:
    """The redactor of the moment, or the last that there was.

    While the host starts and one is still to come, what is written says who and when, and nothing of what was said.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._last: Any = None

    def text(self, text: str) -> str:
        """The text with its secrets masked."""
        redact = self._redact()
        if redact is not None:
            return str(redact.text(text))
        return _WITHHELD if self._is_awaited() else text

    def value(self, value: JsonValue) -> JsonValue:
        """The value with its secrets masked."""
        redact = self._redact()
        if redact is not None:
            masked: JsonValue = redact.value(value)
            return masked
        return _withheld(value) if self._is_awaited() else value

    def _is_awaited(self) -> bool:
        """Whether a plugin is going to provide a redactor: one that is there, while not all is that has to be."""
        kernel = self._ctx.fiber.kernel
        return kernel.closed_by is not None and any(_REDACT in fiber.spec.provides for fiber in kernel.fibers)

    def _redact(self) -> Any:
        self._last = self._ctx.get(_REDACT) or self._last
        return self._last


def _withheld(value: JsonValue) -> JsonValue:
    """A payload with its names alone."""
    if not isinstance(value, Mapping):
        return _WITHHELD
    return {key: item if key in _NAMES else _WITHHELD for key, item in value.items()}


@frozen(eq=False)
class Recorder:
    """The pipeline's journal: that of the session log, with the owner of each tool and the views of each call."""

    _journal: Journal
    _calls: Mapping[Any, Call]
    _redact: LateRedactor

    def called(self, exec: ToolExecution) -> Coroutine[Any, Any, None] | None:
        """Put a call on record before any policy sees it."""
        tool = self._calls[exec.token].tool
        return self._journal.called(exec, tool.plugin if tool is not None else None)

    def finished(
        self, exec: ToolExecution, result: ToolExecutionResult, story: Sequence[dict[str, JsonValue]] | None
    ) -> Coroutine[Any, Any, None] | None:
        """Put a result on record before anybody hears of it."""
        views = views_of(self._calls[exec.token], result, self._redact.value)
        return self._journal.finished(exec, result, story, views)
