"""The ledger: every registration that is in force, by table, scope and key.

One mechanism holds listeners, tools, guards, restrictions and services. An entry belongs to a fiber; it counts while
the ledger that its fiber writes to holds it. Most fibers write to the live ledger. A fiber that is staged beside the
version it is to replace writes to a ledger of its own, which reads through to the live one without the replaced
fibers; :meth:`Ledger.merge` makes the staged entries live in one step, without a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dsh_runtime.core.errors import ClashError

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber

Place = tuple[str, Hashable]
#: Hears which entries have come or gone.
Watcher = Callable[[Sequence["Entry"]], None]


class Entry:
    """One registration: ``value`` under ``key`` in ``table``, for ``scope`` (``None``: the host), made by ``fiber``."""

    __slots__ = ("band", "fiber", "key", "live", "scope", "seq", "table", "value")

    def __init__(
        self, fiber: Fiber, table: str, scope: Hashable, key: Hashable, value: Any, band: int, seq: int
    ) -> None:
        self.fiber = fiber
        self.table = table
        self.scope = scope
        self.key = key
        self.value = value
        self.band = band
        self.seq = seq
        self.live = True

    @property
    def order(self) -> tuple[int, tuple[int, ...]]:
        """Where the entry sorts: band, position of its plugin in the tree, sequence within the plugin."""
        return self.band, (*self.fiber.path, self.seq)


class Ledger:
    """Entries that count together. ``base`` and ``replaces`` are set on a staged ledger only."""

    def __init__(self, base: Ledger | None = None, replaces: Iterable[Fiber] = ()) -> None:
        self.base = base
        self._replaces = frozenset(replaces)
        self.version = 0
        self.versions: dict[str, int] = {}
        self._index: dict[tuple[str, Hashable, Hashable], Entry] = {}
        self._groups: dict[Place, dict[Entry, None]] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._tables: set[str] = set()

    @property
    def replaces(self) -> frozenset[Fiber]:
        """The fibers whose entries are not there for this ledger."""
        return self._replaces

    def replace(self, fibers: Iterable[Fiber]) -> None:
        """Read through to the live ledger without some more fibers; lists of listeners are made again."""
        self._replaces |= frozenset(fibers)
        self.version += 1
        self.versions["on"] = self.versions.get("on", 0) + 1

    def version_of(self, family: str) -> int:
        """The version of a family of tables, here and in the live ledger below."""
        return self.versions.get(family, 0) + (self.base.version_of(family) if self.base is not None else 0)

    def add(self, entry: Entry) -> None:
        """Put an entry in force. A key that somebody else holds is a :class:`ClashError` that names both."""
        if entry.key is not None:
            self._check_free(entry)
            self._index[entry.table, entry.scope, entry.key] = entry
        self._groups.setdefault((entry.table, entry.scope), {})[entry] = None
        self._tables.add(entry.table)
        entry.fiber.entries[entry] = None
        self.touch(entry.table, (entry,))

    def remove(self, entry: Entry) -> None:
        """Take an entry out of force; one that is out already stays out."""
        if self._take(entry):
            self.touch(entry.table, (entry,))

    def withdraw(self, fiber: Fiber) -> None:
        """Take all entries of a fiber out of force in one step."""
        self.tell([entry for entry in list(fiber.entries) if self._take(entry)])

    def withdraw_scope(self, scope: Hashable) -> None:
        """Take all entries for one scope out of force, whoever made them."""
        found = [entry for table in self._tables for entry in self._groups.get((table, scope), ())]
        self.tell([entry for entry in found if self._take(entry)])

    def find(self, table: str, scope: Hashable, key: Hashable) -> Entry | None:
        """The entry under ``key`` in one scope, or ``None``."""
        entry = self._index.get((table, scope, key))
        if entry is None and self.base is not None:
            entry = self.base.find(table, scope, key)
            if entry is not None and entry.fiber in self.replaces:
                return None
        return entry

    def group(self, table: str, scope: Hashable) -> Iterator[Entry]:
        """The entries of one table in one scope, in the order in which they came."""
        if self.base is not None:
            yield from (entry for entry in self.base.group(table, scope) if entry.fiber not in self.replaces)
        yield from self._groups.get((table, scope), ())

    def resolve(self, table: str, scopes: Iterable[Hashable]) -> tuple[Entry, ...]:
        """The entries of one table in several scopes, sorted by :attr:`Entry.order`."""
        found = [entry for scope in scopes for entry in self.group(table, scope)]
        return tuple(sorted(found, key=lambda entry: entry.order))

    def watch(self, table: str, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` after each change of ``table`` (or family) with what came or went; give back the undo."""
        watchers = self._watchers.setdefault(table, [])
        watchers.append(watcher)

        def undo() -> None:
            if watcher in watchers:
                watchers.remove(watcher)

        return undo

    def touch(self, table: str, entries: Sequence[Entry] = ()) -> None:
        """Say that ``table`` has changed. Tables named ``family:member`` count, and are watched, as a family."""
        self._tell({table.partition(":")[0]: entries})

    def tell(self, entries: Iterable[Entry]) -> None:
        """Say that entries have come or gone: once for each family."""
        families: dict[str, list[Entry]] = {}
        for entry in entries:
            families.setdefault(entry.table.partition(":")[0], []).append(entry)
        self._tell(families)

    def _tell(self, families: Mapping[str, Sequence[Entry]]) -> None:
        for family in families:  # All of them count as changed before anybody looks.
            self.version += 1
            self.versions[family] = self.versions.get(family, 0) + 1
        for family, entries in families.items():
            for watcher in tuple(self._watchers.get(family, ())):
                watcher(entries)

    def check_mergeable(self, staged: Ledger) -> None:
        """Raise if an entry of ``staged`` clashes with one of a fiber that it does not replace."""
        for place, entry in staged._index.items():
            holder = self._index.get(place)
            if holder is not None and holder.fiber not in staged.replaces:
                raise _clash(entry, holder)

    def merge(self, staged: Ledger) -> list[Entry]:
        """Make the entries of ``staged`` live and those of the fibers it replaces not, in one step.

        Gives what came and went, for the caller to :meth:`tell` when everything else has changed, too. Until then no
        list is made again.
        """
        self.check_mergeable(staged)
        changed = [entry for fiber in staged.replaces for entry in list(fiber.entries) if self._take(entry)]
        for group in staged._groups.values():
            for entry in group:
                if entry.key is not None:
                    self._index[entry.table, entry.scope, entry.key] = entry
                self._groups.setdefault((entry.table, entry.scope), {})[entry] = None
                self._tables.add(entry.table)
                changed.append(entry)
        return changed

    def _take(self, entry: Entry) -> bool:
        group = self._groups.get((entry.table, entry.scope))
        if group is None or entry not in group:
            return False
        entry.live = False
        del group[entry]
        if not group:
            del self._groups[entry.table, entry.scope]
        entry.fiber.entries.pop(entry, None)
        place = (entry.table, entry.scope, entry.key)
        if self._index.get(place) is entry:
            del self._index[place]
        return True

    def _check_free(self, entry: Entry) -> None:
        holder = self.find(entry.table, entry.scope, entry.key)
        if holder is not None:
            raise _clash(entry, holder)


def _clash(entry: Entry, holder: Entry) -> ClashError:
    name = entry.key if isinstance(entry.key, str) else repr(entry.key)
    if entry.fiber is holder.fiber:
        return ClashError(f"plugin {entry.fiber.id!r} registers {entry.table} {name!r} twice; remove or rename one")
    return ClashError(
        f"plugin {entry.fiber.id!r} registers {entry.table} {name!r}, which plugin {holder.fiber.id!r} has registered "
        f"already; rename one of them, or unload {holder.fiber.id!r}"
    )
