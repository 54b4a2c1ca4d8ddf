"""How often each agent has made its latest call in a row.

Agents whose key equals nothing but itself are kept weakly: nobody can present such a key again once it is gone. Of all
others (texts, numbers) the ones heard of last are kept, up to a limit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, MutableMapping
from typing import Final
from weakref import WeakKeyDictionary

from attrs import define
from dsh_hookspecs import ExecutionToken, ToolExecution

_LIMIT: Final = 1000


@define(eq=False)
class _Streak:
    """The latest call of an agent, and how often it was made in a row."""

    digest: str
    token: ExecutionToken
    count: int = 1


class Streaks:
    """The streak of each agent."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._weak: WeakKeyDictionary[Hashable, _Streak] = WeakKeyDictionary()
        self._strong: OrderedDict[Hashable, _Streak] = OrderedDict()

    def __len__(self) -> int:
        return len(self._weak) + len(self._strong)

    def count(self, call: ToolExecution) -> int:
        """Note a call; how often its agent has now made it in a row. Noting the same call again changes nothing."""
        agent: Hashable = call.agent
        streaks = self._home_of(agent)
        streak = streaks.get(agent)
        if streak is None or streak.digest != call.digest:
            streak = streaks[agent] = _Streak(call.digest, call.token)
        elif streak.token is not call.token:
            streak.token = call.token
            streak.count += 1
        self._bound(agent)
        return streak.count

    def _home_of(self, agent: Hashable) -> MutableMapping[Hashable, _Streak]:
        kind = type(agent)
        alone = kind.__weakrefoffset__ != 0 and kind.__eq__ is object.__eq__
        return self._weak if alone else self._strong

    def _bound(self, agent: Hashable) -> None:
        if agent in self._strong:
            self._strong.move_to_end(agent)
        if len(self._strong) > self._limit:
            self._strong.popitem(last=False)
