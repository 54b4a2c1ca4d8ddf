"""Carry out one wish: one transaction after the other, and a report of what became of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from attrs import define, evolve, field

from dsh_runtime.core.fiber import Fiber
from dsh_runtime.loader.errors import ConfigProblem, LoaderError, Location, did_you_mean
from dsh_runtime.loader.host import Host, LoadedPlugin
from dsh_runtime.loader.model import HostConfig
from dsh_runtime.loader.ownership import is_host
from dsh_runtime.loader.pinned import refusals, stray_pins

from .apply import take_up
from .aside import Aside
from .edit import Edit, compare, named
from .graph import file_of, is_hosts
from .member import Member
from .outlook import Outlook, look
from .plan import Group
from .report import Kept, Reloaded, ReloadReport, RestartNeeded
from .survey import Subject, refusal_of, subjects_of
from .transaction import Transaction

if TYPE_CHECKING:
    from .reloader import Reloader
    from .wishes import Wish

EMPTIED: Final = "the file is empty, which would unload every plugin; to have that, leave a comment in it"


@define(eq=False)
class Attempt:
    """One attempt to carry out a wish."""

    reloader: Reloader
    wish: Wish
    reloaded: list[Reloaded] = field(factory=list)
    kept: dict[str, tuple[ConfigProblem, ...]] = field(factory=dict)
    restart: dict[str, str] = field(factory=dict)
    problems: list[ConfigProblem] = field(factory=list)
    _edit: Edit | None = None
    _seen: set[str] = field(factory=set)
    _grown: bool = False
    _superseded: bool = False

    async def run(self) -> ReloadReport | None:
        """The report; ``None`` if a newer wish came while a new version took its time."""
        self._look_at_hosts_own()
        outlook = await self._look(self._read_edit())
        self._check_ids(outlook)
        if outlook.edit is not None:
            if await self._transact(outlook, outlook.edited()):
                self._edit = outlook.edit
            if self._edit is None or self._grown:
                outlook = await self._look(None)
        while not self._superseded and (group := self._next(outlook)) is not None:
            await self._transact(outlook, group)
            if self._grown:  # What has been planned rests on fibers that are gone.
                outlook = await self._look(None)
        if self._superseded:
            self.wish.earlier += self.reloaded
            return None
        self._note(outlook)
        return self._report()

    def _next(self, outlook: Outlook) -> Group | None:
        """A group of which not every plugin has had its turn."""
        return next((group for group in outlook.others() if not self._seen.issuperset(group.ids)), None)

    async def _look(self, edit: Edit | None) -> Outlook:
        """See what is concerned; an edit that needs a restart is left out, as a whole."""
        outlook = await look(self.reloader, self.wish, edit)
        refused = outlook.refusals_of_edit() if edit is not None else {}
        self.restart |= {**outlook.plan.restart, **refused}
        return await look(self.reloader, self.wish, None) if refused else outlook

    def _note(self, outlook: Outlook) -> None:
        """Note which files there are now, for telling new ones."""
        roots = (one.root for one in outlook.subjects.values() if one.root is not None)
        self.reloader.disk.note(outlook.graph, roots)

    # The config.

    def _read_edit(self) -> Edit | None:
        """What the config file changes; ``None`` if nobody wants to know, or it cannot be used."""
        reloader, host = self.reloader, self.reloader.host
        if not self._concerns_config(host.config):
            return None
        reloader.config_failed = True
        try:
            new = reloader.read_config()
        except LoaderError as error:
            self.problems += error.problems
            return None
        if _is_emptied(host):
            self.problems.append(ConfigProblem((), EMPTIED, Location(host.config.sources[-1], 1)))
            return None
        if new.pins is not None:
            self.problems += stray_pins(new)
            if new.pins != host.config.pins:
                self.problems += [problem for refused in refusals(new).values() for problem in refused.problems]
            if self.problems:
                return None
        reloader.config_failed = False
        edit = compare(host.config, new)
        if edit.fixed:
            why = "it takes effect when the host starts; nothing of the edit is in force until then"
            self.restart[named(edit.fixed)] = why
            return None
        return edit

    def _concerns_config(self, config: HostConfig) -> bool:
        if self.wish.config or (self.reloader.config_failed and self.wish.paths):
            return True
        files = {os.path.realpath(self.reloader.host.file_at(file)) for file in (*config.sources, *config.value_files)}
        return any(os.path.realpath(path) in files for path in self.wish.paths)

    # One transaction.

    async def _transact(self, outlook: Outlook, group: Group) -> bool:
        edited = outlook.edit if outlook.edit is not None and group == outlook.edited() else None
        members = [self._member(outlook.subjects[plugin], why) for plugin, why in group.why.items()]
        transaction = Transaction(
            self.reloader.host.ctx,
            outlook.edit.new if outlook.edit is not None else self.reloader.host.config,
            members,
            self._aside(outlook, group, members),
            lambda fiber: self._enlist(outlook, fiber),
            lambda: self._committed(members, edited),
            self._exchanged,
            removed=[one.fiber for one in outlook.removed() if one.fiber is not None] if edited is not None else [],
            moves=self._moves(outlook, group) if edited is not None else {},
        )
        done = await self._run(transaction)
        self._seen |= {member.id for member in members}
        self._grown = len(members) > len(group.ids)
        if done:
            self._note_success(members)
        elif not transaction.superseded:
            self._note_failure(transaction, edited)
        self._superseded = self._superseded or (transaction.superseded and not done)
        return done

    async def _run(self, transaction: Transaction) -> bool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.reloader.watch_for_newer, transaction)
            done = await transaction.run()
            nursery.cancel_scope.cancel()
        return done

    def _member(self, subject: Subject, why: str) -> Member:
        return Member(subject.id, why, subject.path, subject.loaded, subject.row, subject.anchor)

    def _aside(self, outlook: Outlook, group: Group, members: list[Member]) -> Aside:
        files = [module.file for name in group.afresh if (module := outlook.graph.modules[name]).file is not None]
        folders = {os.path.dirname(file) for file in (*files, *map(str, self.wish.paths)) if file is not None}
        by_file = {member.anchor.module for member in members if member.anchor is not None and member.anchor.file}
        return Aside(self.reloader.finder, group.afresh | by_file, folders)

    def _enlist(self, outlook: Outlook, fiber: Fiber) -> tuple[Member, frozenset[str]]:
        """A plugin that turns out to be concerned; of its modules those come afresh that nobody else rests on."""
        host = self.reloader.host
        subject = next(one for one in subjects_of(host, host.config) if one.fiber is fiber)
        member = self._member(subject, "it uses, or listens to, what is reloaded")
        member.refuses = refusal_of(fiber)
        others = [one.root for one in outlook.subjects.values() if one.id != subject.id and one.root is not None]
        shared = frozenset().union(*map(outlook.graph.closure, others))
        own = outlook.graph.closure(subject.root) if subject.root is not None and subject.anchor is not None else ()
        top = (subject.root or "").partition(".")[0]
        return member, frozenset(name for name in own if name.partition(".")[0] == top) - shared

    def _moves(self, outlook: Outlook, group: Group) -> dict[Fiber, tuple[int, ...]]:
        """The plugins that stay and get another position."""
        return {
            subject.fiber: subject.path
            for subject in outlook.subjects.values()
            if subject.fiber is not None
            and subject.id not in group.why
            and subject not in outlook.removed()
            and subject.fiber.path != subject.path
        }

    # What became of it.

    def _committed(self, members: list[Member], edit: Edit | None) -> None:
        """The new versions are in force: the host knows them, and the config that they came with."""
        host = self.reloader.host
        new = {member.id: LoadedPlugin(member.id, member.row, member.fiber) for member in members}
        plugins = [new.get(plugin.id, plugin) for plugin in host.plugins]
        if edit is not None:
            loaded = {plugin.id: plugin for plugin in plugins if plugin.row is not None} | new
            rows = [evolve(loaded[row.id], row=row) for row in edit.new.rows if row.enabled]
            rest = [plugin for plugin in plugins if plugin.row is None]
            first = [plugin for plugin in rest if plugin.fiber is not None and plugin.fiber.path[0] < host.block]
            plugins = [*first, *rows, *(plugin for plugin in rest if plugin not in first)]
            take_up(host, edit.new)
        host.plugins[:] = plugins

    def _exchanged(self, old: Fiber, new: Fiber) -> None:
        host = self.reloader.host
        host.plugins[:] = [evolve(one, fiber=new) if one.fiber is old else one for one in host.plugins]

    def _note_success(self, members: list[Member]) -> None:
        for member in members:
            self.reloader.failed.pop(member.id, None)
            if member.loaded is not None:
                self.reloaded.append(Reloaded(member.id, member.seconds * 1000, member.why))

    def _note_failure(self, transaction: Transaction, edit: Edit | None) -> None:
        members = transaction.members
        broken = next((member.id for member in members if member.problems), None)
        with_it = f"it is reloaded together with {broken!r}, which failed"
        if transaction.restart:
            cause = next(iter(transaction.restart))
            text = f"it is reloaded together with {cause!r}, which needs one"
            self.restart |= {member.id: transaction.restart.get(member.id, text) for member in members}
            return
        self.reloader.failed |= dict.fromkeys(member.id for member in members if member.loaded is not None)
        for member in members:
            problems = [ConfigProblem((), with_it)]
            if member.problems or broken is None:
                problems = [*member.problems, *transaction.problems]
            if edit is not None and (member.id in edit.touched or not member.problems):
                self.problems += member.problems
            else:
                self.kept[member.id] = tuple(problems)
        if edit is not None:
            self.reloader.config_failed = True
            self.problems += transaction.problems

    def _check_ids(self, outlook: Outlook) -> None:
        for plugin in self.wish.ids:
            if plugin not in outlook.subjects:
                text = f"no plugin has the id {plugin!r}; {did_you_mean(plugin, outlook.subjects)}"
                self.kept[plugin] = (ConfigProblem((), text),)

    def _look_at_hosts_own(self) -> None:
        """Say of the host's own modules that have changed that they need a restart."""
        files = {os.path.realpath(path) for path in self.wish.paths if _may_be_hosts(str(path))}
        for name, module in [*sys.modules.items()] if files else ():
            if is_hosts(name) and file_of(module) in files:
                self.restart[name] = "it is the host's own module, and has changed"

    def _report(self) -> ReloadReport:
        return ReloadReport(
            reloaded=(*self.wish.earlier, *self.reloaded),
            kept=tuple(Kept(plugin, problems) for plugin, problems in self.kept.items()),
            restart=tuple(RestartNeeded(subject, why) for subject, why in self.restart.items()),
            added=tuple(self._edit.added) if self._edit is not None else (),
            removed=tuple(self._edit.removed) if self._edit is not None else (),
            problems=tuple(self.problems),
        )


def _is_emptied(host: Host) -> bool:
    """Whether nothing at all is left in the file of a config that had plugins: a save that is half done, or lost."""
    config = host.config
    if not config.sources or all(row.origin is None for row in config.rows):
        return False
    try:
        return not Path(host.file_at(config.sources[-1])).read_bytes().strip()
    except OSError:
        return False


def _may_be_hosts(path: str) -> bool:
    return is_host(path) or "dsh_hookspecs" in path
