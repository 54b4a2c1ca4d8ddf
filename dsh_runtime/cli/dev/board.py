"""What there is to see of a host in which somebody works, as values that any screen can show."""

from __future__ import annotations

from collections import deque
from typing import Final, Literal, TypeAlias

from attrs import define, field, frozen

from dsh_runtime.cli.dev.calls import Outcome
from dsh_runtime.loader.errors import ConfigProblem
from dsh_runtime.loader.host import Host, why_not_active
from dsh_runtime.loader.reload.report import ReloadReport

Mark: TypeAlias = Literal["up", "change", "error", "note", "result"]
MAX_CHANGES: Final = 8
_CONFIG: Final = "config"
_GOOD: Final = ("reloaded ", "added ", "removed ")
"""How the lines of a report begin that tell of no trouble."""


@frozen
class Line:
    """One thing that has happened, in words."""

    mark: Mark
    text: str


@frozen
class Shown:
    """One plugin as a screen shows it."""

    id: str
    state: str
    tools: tuple[str, ...] = ()
    reloads: int = 0
    worked_on: bool = False


@define(eq=False)
class Board:
    """The plugins, the errors that stand, what has changed lately, and the outcome of each call."""

    host: Host
    worked_on: frozenset[str] = frozenset()
    errors: dict[str, tuple[str, ...]] = field(factory=dict)
    changes: deque[Line] = field(factory=lambda: deque(maxlen=MAX_CHANGES))
    outcomes: dict[str, Outcome] = field(factory=dict)
    _reloads: dict[str, int] = field(factory=dict)

    def begin(self) -> list[Line]:
        """What is there at the start."""
        problems = {plugin.id: why_not_active(plugin) for plugin in self.host.plugins}
        self.errors = {who: tuple(map(author_line, what)) for who, what in problems.items() if what}
        lines = [Line("up", _describe(shown)) for shown in self.plugins() if shown.state == "active"]
        return self._note([*lines, *(Line("error", text) for texts in self.errors.values() for text in texts)])

    def reloaded(self, report: ReloadReport) -> list[Line]:
        """Take in what a reload did."""
        for one in report.reloaded:
            self._reloads[one.id] = self._reloads.get(one.id, 0) + 1
        self.errors = {who: what for who, what in self.errors.items() if self._stands(who)}
        self.errors |= {one.id: tuple(map(author_line, one.problems)) for one in report.kept}
        self.errors |= {one.subject: (f"restart: {one.why}",) for one in report.restart}
        if report.problems:
            self.errors[_CONFIG] = tuple(map(author_line, report.problems))
        return self._note(_lines(report))

    def note(self, text: str, mark: Mark = "note") -> list[Line]:
        """Take in something else that has happened."""
        return self._note([Line(mark, text)])

    def called(self, outcome: Outcome) -> list[Line]:
        """Take in what came of a call."""
        self.outcomes[outcome.call.text] = outcome
        return [Line("result" if outcome.ok else "error", f"call {outcome.call.text}: {outcome.text}")]

    def plugins(self) -> list[Shown]:
        """The plugins in their order."""
        runtime = self.host.ctx.tools
        tools: dict[str, list[str]] = {}
        for schema in runtime.schemas():
            tools.setdefault(runtime.owner(schema["name"]), []).append(schema["name"])
        return [
            Shown(
                id=plugin.id,
                state=str(plugin.fiber.state) if plugin.fiber is not None else "not loaded",
                tools=tuple(tools.get(plugin.id, ())),
                reloads=self._reloads.get(plugin.id, 0),
                worked_on=plugin.id in self.worked_on,
            )
            for plugin in self.host.plugins
            if plugin.row is not None
        ]

    def _stands(self, who: str) -> bool:
        """Whether what was wrong still is, though nobody has told of it again."""
        if who == _CONFIG:
            return self.host.reload.config_failed
        inactive = any(plugin.id == who and why_not_active(plugin) for plugin in self.host.plugins)
        return inactive or who in self.host.reload.failed

    def _note(self, lines: list[Line]) -> list[Line]:
        self.changes.extend(lines)
        return lines


def author_line(problem: ConfigProblem) -> str:
    """A problem in one line, which begins with the place in the author's own code."""
    return " ".join(str(problem).split("\n"))


def _describe(shown: Shown) -> str:
    tools = f" (tools: {', '.join(shown.tools)})" if shown.tools else ""
    return f"{shown.id} is active{tools}"


def _lines(report: ReloadReport) -> list[Line]:
    return [Line("change" if text.startswith(_GOOD) else "error", text) for text in report.lines()]
