"""What a wish concerns: the plugins under the config that is to be, their modules, what has changed, and the plan."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from .edit import Edit, why_changed
from .graph import ModuleGraph
from .plan import RETRIED, Candidate, Group, Plan, make_plan
from .survey import Newcomers, Subject, candidate_of, refusal_of, subjects_of, users_of

if TYPE_CHECKING:
    from .reloader import Reloader
    from .wishes import Wish


@frozen
class Outlook:
    """What is to be done for a wish, with an edit of the config or without."""

    edit: Edit | None
    subjects: dict[str, Subject]
    graph: ModuleGraph
    plan: Plan

    def edited(self) -> Group:
        """The plugins that come or change with the edit, and all that goes with them."""
        assert self.edit is not None
        concerned = {*self.edit.touched, *self.users_of_removed()}
        found = next((group for group in self.plan.groups if not concerned.isdisjoint(group.ids)), None)
        return found if found is not None else Group({}, frozenset())

    def others(self) -> list[Group]:
        """The groups that have nothing to do with the edit."""
        edited = self.edited() if self.edit is not None else None
        return [group for group in self.plan.groups if group is not edited]

    def refusals_of_edit(self) -> dict[str, str]:
        """The plugins that would have to change with the edit, and cannot while the host runs."""
        assert self.edit is not None
        touched = {*self.edit.touched, *self.users_of_removed()}
        found = {plugin: why for plugin, why in self.plan.restart.items() if plugin in touched}
        removed = ((one.id, refusal_of(one.fiber)) for one in self.removed())
        return found | {plugin: why for plugin, why in removed if why is not None}

    def removed(self) -> list[Subject]:
        """The plugins that go."""
        return [self.subjects[plugin] for plugin in self.edit.removed] if self.edit is not None else []

    def users_of_removed(self) -> dict[str, str]:
        """The plugins that use a service of one that goes, each with why it is concerned."""
        return {
            user: f"the service {service!r} of {one.id!r} goes"
            for one in self.removed()
            for user, service in users_of(one.fiber).items()
        }


async def look(reloader: Reloader, wish: Wish, edit: Edit | None) -> Outlook:
    """See what a wish concerns."""
    host = reloader.host
    config = edit.new if edit is not None else host.config
    graph = await reloader.graph(config)
    subjects = {subject.id: subject for subject in subjects_of(host, config)}
    removed = {} if edit is None else {one.id: one for one in subjects_of(host, host.config) if one.id in edit.removed}
    outlook = Outlook(edit, subjects | removed, graph, Plan())
    asked = dict(_asked(reloader, wish, outlook, subjects))
    candidates = [candidate_of(subject, graph) for subject in subjects.values()]
    changed = _changed(reloader, wish, graph, candidates, asked)
    together = [*edit.touched, *outlook.users_of_removed()] if edit is not None else []
    plan = make_plan(candidates, graph, changed, asked, together)
    return Outlook(edit, outlook.subjects, graph, plan)


def _asked(reloader: Reloader, wish: Wish, outlook: Outlook, subjects: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The plugins that are to be reloaded whether or not their sources have changed, each with why."""
    wanted: dict[str, str] = {}
    if wish.everything or any(path.suffix in ("", ".py") for path in wish.paths):
        wanted |= dict.fromkeys(reloader.failed, RETRIED)
    wanted |= dict(_without_module(wish, outlook))
    wanted |= dict.fromkeys(wish.ids, "it was asked for")
    edit = outlook.edit
    if edit is not None:
        old = {row.id: row for row in reloader.host.config.rows}
        wanted |= outlook.users_of_removed()
        wanted |= {plugin: why_changed(old[plugin], row) for plugin, row in edit.changed.items()}
        wanted |= dict.fromkeys(edit.added, "the config brings it")
    for plugin in subjects:
        if plugin in wanted:
            yield plugin, wanted[plugin]


def _without_module(wish: Wish, outlook: Outlook) -> Iterator[tuple[str, str]]:
    """File plugins whose file has changed and whose module is not to be found: it has put itself away, or another thing
    in its place."""
    paths, loaded = {os.path.realpath(path) for path in wish.paths}, outlook.graph.by_file()
    for plugin, one in outlook.subjects.items():
        if one.fiber is not None and one.anchor is not None and one.anchor.file is not None:
            file = os.path.realpath(one.anchor.file)
            if file in paths and file not in loaded:
                yield plugin, f"{os.path.basename(file)} changed"


def _changed(
    reloader: Reloader, wish: Wish, graph: ModuleGraph, candidates: Iterable[Candidate], asked: Iterable[str]
) -> frozenset[str]:
    """The modules that count as changed: those of the paths, and what differs from the disk in what is concerned."""
    if wish.everything:
        return frozenset(reloader.disk.dirty(graph.modules.values(), reloader.finder.stamps))
    named = frozenset(_named(reloader, wish.paths, graph))
    closures = {one.id: graph.closure(one.root) if one.root is not None else frozenset() for one in candidates}
    wanted = frozenset(asked)
    concerned = [closure for plugin, closure in closures.items() if plugin in wanted or not closure.isdisjoint(named)]
    modules = (graph.modules[name] for name in frozenset().union(*concerned))
    return named | frozenset(reloader.disk.dirty(modules, reloader.finder.stamps))


def _named(reloader: Reloader, paths: Iterable[Path], graph: ModuleGraph) -> Iterator[str]:
    by_file, newcomers = graph.by_file(), Newcomers(reloader.disk, graph)
    for path in paths:
        loaded = by_file.get(os.path.realpath(path))
        if loaded:
            yield from (module.name for module in loaded)
        else:
            yield from newcomers.concerned(path)
