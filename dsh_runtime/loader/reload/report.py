"""What became of a reload, as frozen values that a screen or a log can tell."""

from __future__ import annotations

from attrs import frozen

from dsh_runtime.loader.errors import ConfigProblem


@frozen
class Reloaded:
    """A plugin that runs in a new version: how long importing and applying it took, and why it was reloaded."""

    id: str
    milliseconds: float
    why: str


@frozen
class Kept:
    """A plugin that keeps its old version. Each problem has the author's own file and line where there is one."""

    id: str
    problems: tuple[ConfigProblem, ...]


@frozen
class RestartNeeded:
    """Something that cannot change while the host runs: a plugin's id, a module or a setting, and why."""

    subject: str
    why: str


@frozen
class ReloadReport:
    """What one reload did. ``added`` and ``removed`` are the plugins that an edit of the config brought or took."""

    reloaded: tuple[Reloaded, ...] = ()
    kept: tuple[Kept, ...] = ()
    restart: tuple[RestartNeeded, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[ConfigProblem, ...] = ()
    """What is wrong with the config file itself; nothing of the edit is in force then."""

    @property
    def ok(self) -> bool:
        """Whether everything that was asked for is in force."""
        return not (self.kept or self.restart or self.problems)

    @property
    def empty(self) -> bool:
        """Whether there was nothing to do."""
        return self == ReloadReport()

    def lines(self) -> list[str]:
        """One line for each thing that happened, or did not."""
        lines = [f"reloaded {one.id} ({one.milliseconds:.0f} ms): {one.why}" for one in self.reloaded]
        lines += [f"added {plugin}" for plugin in self.added] + [f"removed {plugin}" for plugin in self.removed]
        lines += [f"kept {one.id} as it was: {problem}" for one in self.kept for problem in one.problems]
        lines += [f"the config is not in force: {problem}" for problem in self.problems]
        return lines + [f"restart for {one.subject}: {one.why}" for one in self.restart]
