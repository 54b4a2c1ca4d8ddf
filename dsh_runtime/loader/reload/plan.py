"""What a reload is to do: which plugins, with which modules afresh, and which of them together. Pure decisions.

Concerned is a plugin that rests on a changed module, that was asked for, or that uses a service of one that is
concerned. Afresh come the modules that have changed and all that import them, and whatever of a concerned plugin's own
package no other plugin rests on: so the new version shares nothing with the old one that it could spoil. What it shares
with others stays one and the same, unless it has changed; then they are reloaded together.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from .graph import ModuleGraph

RETRIED: Final = "the version before could not be loaded"


@frozen
class Candidate:
    """A plugin as the plan sees it. ``root`` is the module that it comes from.

    ``sourced`` says whether it can be imported afresh by name; an object that was handed over cannot.
    """

    id: str
    root: str | None
    sourced: bool = True
    #: The plugins that use its services, each with the name of one.
    users: Mapping[str, str] = field(factory=dict)
    #: Why it cannot be replaced while the host runs, if so.
    refuses: str | None = None


@frozen
class Group:
    """Plugins that are reloaded together, in order, each with why; and the modules that come afresh."""

    why: Mapping[str, str]
    afresh: frozenset[str]

    @property
    def ids(self) -> tuple[str, ...]:
        """The plugins."""
        return tuple(self.why)


@frozen
class Plan:
    """The groups, one transaction each, and the plugins that need a restart, each with why."""

    groups: tuple[Group, ...] = ()
    restart: Mapping[str, str] = field(factory=dict)


def make_plan(
    candidates: Sequence[Candidate],
    graph: ModuleGraph,
    changed: Collection[str],
    asked: Mapping[str, str],
    together: Collection[str] = (),
) -> Plan:
    """Plan a reload. ``changed`` are modules, ``asked`` plugins with why; those of ``together`` form one group."""
    return _Planning(candidates, graph, changed, asked, together).plan()


class _Planning:
    def __init__(
        self,
        candidates: Sequence[Candidate],
        graph: ModuleGraph,
        changed: Collection[str],
        asked: Mapping[str, str],
        together: Collection[str],
    ) -> None:
        self._candidates = {candidate.id: candidate for candidate in candidates}
        self._graph = graph
        self._changed = frozenset(changed)
        self._together = [plugin for plugin in together if plugin in self._candidates]
        self._closures = {one.id: graph.closure(one.root) if one.root else frozenset() for one in candidates}
        self._why = self._concerned(asked)

    def plan(self) -> Plan:
        afresh = self._afresh()
        restart = {plugin: why for plugin in self._why if (why := self._refusal(plugin, afresh))}
        groups = []
        for members in self._groups(afresh):
            blocked = next((plugin for plugin in members if plugin in restart), None)
            if blocked is None:
                touched = frozenset().union(*(self._closures[plugin] for plugin in members)) & afresh
                groups.append(Group({plugin: self._why[plugin] for plugin in members}, touched))
            else:
                text = f"it is reloaded together with {blocked!r}, which needs one"
                restart |= {plugin: restart.get(plugin, text) for plugin in members}
        return Plan(tuple(groups), restart)

    def _concerned(self, asked: Mapping[str, str]) -> dict[str, str]:
        """The plugins that are to be reloaded, in order, each with why."""
        why = {**asked}
        for plugin, closure in self._closures.items():
            if why.get(plugin, RETRIED) == RETRIED and (touched := closure & self._changed):
                why[plugin] = self._naming(touched)
        waiting = [plugin for plugin in why if plugin in self._candidates]
        for plugin in waiting:  # The list grows while it is walked.
            for user, service in self._candidates[plugin].users.items():
                if user not in why and user in self._candidates:
                    why[user] = f"it uses the service {service!r} of {plugin!r}"
                    waiting.append(user)
        return {plugin: why[plugin] for plugin in self._candidates if plugin in why}

    def _naming(self, touched: Iterable[str]) -> str:
        modules = (self._graph.modules[name] for name in sorted(touched))
        files = [os.path.basename(module.file or module.name) for module in modules]
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        return f"{files[0]}{more} changed"

    def _afresh(self) -> frozenset[str]:
        sourced = [plugin for plugin in self._why if self._candidates[plugin].sourced]
        among = frozenset().union(*(self._closures[plugin] for plugin in sourced))
        shared = frozenset().union(*(self._closures[one] for one in self._candidates if one not in sourced))
        own = {name for plugin in sourced for name in self._own(plugin)} - shared
        loose = {name for name in among if self._graph.modules[name].loose and self._graph.modules[name].file}
        return self._graph.resting_on((self._changed | own) & loose, loose)

    def _own(self, plugin: str) -> frozenset[str]:
        """The modules of a plugin's own package that it rests on."""
        top = (self._candidates[plugin].root or "").partition(".")[0]
        return frozenset(name for name in self._closures[plugin] if name.partition(".")[0] == top)

    def _refusal(self, plugin: str, afresh: frozenset[str]) -> str | None:
        candidate, closure = self._candidates[plugin], self._closures[plugin]
        if candidate.refuses is not None:
            return candidate.refuses
        for name in sorted(closure & self._changed):
            if not self._graph.modules[name].loose:
                return f"{self._graph.modules[name].file} changed, which cannot be imported afresh"
        if not candidate.sourced and closure & (afresh | self._changed):
            return "it was handed over as an object, which cannot be imported afresh"
        return None

    def _groups(self, afresh: frozenset[str]) -> list[list[str]]:
        """The concerned plugins, put together where they share a fresh module, a service or an edit."""
        group_of = {plugin: [plugin] for plugin in self._why}
        for one, other in self._ties(afresh):
            if group_of[one] is not group_of[other]:
                group_of[one] += group_of[other]
                for member in group_of[other]:
                    group_of[member] = group_of[one]
        order = list(self._candidates)
        groups = {id(members): members for members in group_of.values()}
        return [sorted(members, key=order.index) for members in groups.values()]

    def _ties(self, afresh: frozenset[str]) -> Iterable[tuple[str, str]]:
        first: dict[str, str] = {}
        for plugin in self._why:
            for name in self._closures[plugin] & afresh:
                yield first.setdefault(name, plugin), plugin
            for user in self._candidates[plugin].users:
                if user in self._why:
                    yield plugin, user
        edited = [plugin for plugin in self._together if plugin in self._why]
        yield from itertools.pairwise(edited)
