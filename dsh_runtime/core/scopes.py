"""Scopes: opaque keys (an agent, a client session) in a tree, to which registrations and dispatches are bound.

The first handle on a key owns the scope: disposing it ends the scope for everybody, and the scopes below it. A later
handle on the same key adds registrations of its own and takes only those away.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Hashable
from typing import TYPE_CHECKING

from dsh_runtime.core.effects import EffectStack
from dsh_runtime.core.errors import ScopeClosedError, ScopeError

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context


class ScopeKey:
    """A key that is made for one scope and equals nothing but itself."""

    __slots__ = ("__weakref__", "label")

    def __init__(self, label: str = "scope") -> None:
        self.label = label

    def __repr__(self) -> str:
        return f"<{self.label} {id(self):#x}>"


class ScopeTree:
    """Which keys are open, under which parents, and which have been closed.

    A closed key is remembered for as long as anybody can present it: weakly where it equals nothing but itself, else
    for good.
    """

    def __init__(self) -> None:
        self._parents: dict[Hashable, Hashable | None] = {}
        self._children: dict[Hashable, dict[Hashable, None]] = {}
        self._owners: dict[Hashable, ScopeHandle] = {}
        self._closed_weak: weakref.WeakSet[Hashable] = weakref.WeakSet()
        self._closed: set[Hashable] = set()

    def bind(self, handle: ScopeHandle) -> None:
        """Open the handle's key under its parent, or join the scope if it is open with the same parent."""
        key, parent = handle.key, handle.parent
        if key in self._owners:
            if parent is not None and self._parents[key] != parent:
                raise ScopeError(
                    f"scope {key!r} is bound to the parent {self._parents[key]!r} and cannot be bound to {parent!r}; "
                    "a scope keeps its parent"
                )
            handle.parent = self._parents[key]
            handle.joined = self._owners[key]
            return
        self._check_circle(key, parent)
        self._closed.discard(key)
        if self._weakly(key):
            self._closed_weak.discard(key)
        self._parents[key] = parent
        if parent is not None:
            self._children.setdefault(parent, {})[key] = None
        self._owners[key] = handle

    def close(self, handle: ScopeHandle) -> list[ScopeHandle]:
        """End a scope and those below it: calls for them are refused from now on.

        Gives their owners, the lowest first; nothing if the scope has been closed already.
        """
        if self._owners.get(handle.key) is not handle:
            return []
        owners = self._below(handle)
        for owner in owners:
            self._close(owner.key)
        return owners

    def _below(self, handle: ScopeHandle) -> list[ScopeHandle]:
        """The owners of the scopes below a scope, and its own, the lowest first."""
        found = [handle]
        for owner in found:  # The list grows while it is walked.
            found += [self._owners[key] for key in self._children.get(owner.key, ())]
        return found[::-1]

    def _close(self, key: Hashable) -> None:
        del self._owners[key]
        parent = self._parents.pop(key)
        if parent is not None:
            siblings = self._children[parent]
            del siblings[key]
            if not siblings:
                del self._children[parent]
        if self._weakly(key):
            self._closed_weak.add(key)
        else:
            self._closed.add(key)

    def chain(self, key: Hashable | None) -> tuple[Hashable, ...]:
        """``key`` and its ancestors, nearest first. :class:`ScopeClosedError` if one of them has been disposed."""
        chain: list[Hashable] = []
        while key is not None:
            if self._is_closed(key):
                raise ScopeClosedError(f"scope {key!r} has been disposed; open a new one")
            chain.append(key)
            key = self._parents.get(key)
        return tuple(chain)

    def is_open(self, key: Hashable) -> bool:
        """Whether the key has been bound and not closed."""
        return key in self._owners

    def _is_closed(self, key: Hashable) -> bool:
        if key in self._owners:
            return False
        return key in self._closed or (self._weakly(key) and key in self._closed_weak)

    def _check_circle(self, key: Hashable, parent: Hashable | None) -> None:
        ancestor = parent
        while ancestor is not None:
            if ancestor == key:
                raise ScopeError(
                    f"scope {key!r} cannot stand below {parent!r}, which stands below it; scopes form a tree"
                )
            if self._is_closed(ancestor):
                raise ScopeClosedError(f"scope {ancestor!r} has been disposed; nothing can stand below it")
            ancestor = self._parents.get(ancestor)

    @staticmethod
    def _weakly(key: Hashable) -> bool:
        kind = type(key)
        return kind.__weakrefoffset__ != 0 and kind.__eq__ is object.__eq__


class ScopeHandle:
    """A scope as one plugin holds it: ``ctx`` registers for it, ``dispose()`` ends it."""

    def __init__(self, key: Hashable, parent: Hashable | None, owner: str) -> None:
        self.key = key
        self.parent = parent
        self.joined: ScopeHandle | None = None
        self.stack = EffectStack(owner)
        self.guests: dict[ScopeHandle, None] = {}
        self.ctx: Context

    def dispose(self) -> Awaitable[None]:
        """End the scope."""
        raise NotImplementedError
