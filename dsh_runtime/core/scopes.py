"""Scopes: opaque keys (an agent, a client session) in a tree, to which registrations and dispatches are bound.

The first handle on a key owns the scope: disposing it ends the scope for everybody, and the scopes below it. A later
handle on the same key adds registrations of its own and takes only those away.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Collection, Hashable
from typing import TYPE_CHECKING

from dsh_runtime.core.effects import EffectStack
from dsh_runtime.core.errors import ScopeClosedError, ScopeError

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context
    from dsh_runtime.core.fiber import Fiber


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
        owner = self.owner(handle.key)
        if owner is None:
            self._check_circle(handle.key, handle.parent)
            self._open(handle)
            return
        if handle.parent is not None and owner.parent != handle.parent:
            raise ScopeError(
                f"scope {handle.key!r} is bound to the parent {owner.parent!r} and cannot be bound to "
                f"{handle.parent!r}; a scope keeps its parent"
            )
        handle.parent = owner.parent
        self._join(handle, owner)

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

    def leave(self, handle: ScopeHandle) -> None:
        """A handle that has joined somebody else's scope ends."""
        if handle.joined is not None:
            handle.joined.guests.pop(handle, None)

    def owner(self, key: Hashable) -> ScopeHandle | None:
        """The handle that the scope of an open key belongs to."""
        return self._owners.get(key)

    def hand_over(self, old: ScopeHandle, new: ScopeHandle) -> None:
        """Give a scope to another handle: from now on it ends with that one, and the old one is a guest."""
        self._unlink(new.key)
        new.guests.update(old.guests)
        old.guests.clear()
        for guest in new.guests:
            guest.joined = new
        self._open(new)
        self._join(old, new)

    def _open(self, handle: ScopeHandle) -> None:
        key, parent = handle.key, handle.parent
        self._closed.discard(key)
        if self._weakly(key):
            self._closed_weak.discard(key)
        self._parents[key] = parent
        if parent is not None:
            self._children.setdefault(parent, {})[key] = None
        self._owners[key] = handle
        handle.joined = None

    def _join(self, handle: ScopeHandle, owner: ScopeHandle) -> None:
        handle.joined = owner
        owner.guests[handle] = None

    def _below(self, handle: ScopeHandle) -> list[ScopeHandle]:
        """The owners of the scopes below a scope, and its own, the lowest first."""
        found = [handle]
        for owner in found:  # The list grows while it is walked.
            found += [self._owners[key] for key in self._children.get(owner.key, ())]
        return found[::-1]

    def _close(self, key: Hashable) -> None:
        del self._owners[key]
        self._unlink(key)
        if self._weakly(key):
            self._closed_weak.add(key)
        else:
            self._closed.add(key)

    def _unlink(self, key: Hashable) -> None:
        """Take a key from below its parent."""
        parent = self._parents.pop(key)
        if parent is not None:
            siblings = self._children[parent]
            del siblings[key]
            if not siblings:
                del self._children[parent]

    def chain(self, key: Hashable | None) -> tuple[Hashable, ...]:
        """``key`` and its ancestors, nearest first. :class:`ScopeClosedError` if one of them has been disposed."""
        chain: list[Hashable] = []
        while key is not None:
            if self._is_closed(key):
                raise ScopeClosedError(f"scope {key!r} has been disposed; open a new one")
            chain.append(key)
            key = self._parent_of(key)
        return tuple(chain)

    def hearing(self, key: Hashable | None) -> tuple[Hashable, ...]:
        """The scopes in which a dispatch for ``key`` is heard: its chain, or none where nobody has opened the key.

        A key that is no scope has no listeners, and whatever is kept by chain is to keep nothing of it.
        """
        chain = self.chain(key)
        return chain if chain and self.is_open(chain[0]) else ()

    def is_open(self, key: Hashable) -> bool:
        """Whether the key has been bound and not closed."""
        return self.owner(key) is not None

    def _parent_of(self, key: Hashable) -> Hashable | None:
        return self._parents.get(key)

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
            ancestor = self._parent_of(ancestor)

    @staticmethod
    def _weakly(key: Hashable) -> bool:
        kind = type(key)
        return kind.__weakrefoffset__ != 0 and kind.__eq__ is object.__eq__


class StagedScopes(ScopeTree):
    """The scopes of fibers that are staged: they read through to a live tree, as if those of the fibers that they are
    to replace were not there, and open nothing in it before :meth:`merge`.
    """

    def __init__(self, live: ScopeTree) -> None:
        super().__init__()
        self._live = live
        #: The fibers whose scopes are not there for this tree.
        self.replaces: Collection[Fiber] = frozenset()
        self._joining: dict[ScopeHandle, None] = {}

    def owner(self, key: Hashable) -> ScopeHandle | None:
        """The handle that the scope of an open key belongs to."""
        found = self._owners.get(key) or self._live.owner(key)
        return None if found is None or found.fiber in self.replaces else found

    def leave(self, handle: ScopeHandle) -> None:
        """A handle that has joined somebody else's scope ends."""
        self._joining.pop(handle, None)
        super().leave(handle)

    def check_mergeable(self) -> None:
        """Raise if what has been opened here does not fit what is open meanwhile."""
        for handle in self._owners.values():
            held = self._live.owner(handle.key)
            if held is not None and held.fiber not in self.replaces and held.parent != handle.parent:
                raise ScopeError(f"scope {handle.key!r} has been opened under another parent meanwhile; try again")
            if handle.parent is not None:
                self._live.chain(handle.parent)

    def merge(self) -> None:
        """Open in the live tree what has been opened here, and take over what replaced fibers own."""
        for handle in (*self._owners.values(), *self._joining):
            held = self._live.owner(handle.key)
            if held is None:
                self._live._open(handle)
            elif held.fiber in self.replaces:
                self._live.hand_over(held, handle)
            else:
                self._settle_in(handle, held)

    def _settle_in(self, handle: ScopeHandle, owner: ScopeHandle) -> None:
        """A staged owner whose scope somebody has opened meanwhile becomes a guest, with its guests."""
        for guest in (handle, *handle.guests):
            self._live._join(guest, owner)
        handle.guests.clear()

    def _join(self, handle: ScopeHandle, owner: ScopeHandle) -> None:
        if owner.key in self._owners:
            super()._join(handle, owner)
        else:  # The live owner hears of it when this is in force.
            handle.joined = owner
            self._joining[handle] = None

    def _parent_of(self, key: Hashable) -> Hashable | None:
        owner = self.owner(key)
        return owner.parent if owner is not None else None

    def _is_closed(self, key: Hashable) -> bool:
        if key in self._owners:
            return False
        held = self._live.owner(key)
        return self._live._is_closed(key) if held is None or held.fiber not in self.replaces else False

    def _close(self, key: Hashable) -> None:
        super()._close(key)
        self._closed.discard(key)


class ScopeHandle:
    """A scope as one plugin holds it: ``ctx`` registers for it, ``dispose()`` ends it."""

    def __init__(self, fiber: Fiber, key: Hashable, parent: Hashable | None, owner: str) -> None:
        self.fiber = fiber
        self.key = key
        self.parent = parent
        self.joined: ScopeHandle | None = None
        self.stack = EffectStack(owner)
        self.guests: dict[ScopeHandle, None] = {}
        self.ctx: Context

    def dispose(self) -> Awaitable[None]:
        """End the scope."""
        raise NotImplementedError
