"""Frozen JSON containers, and the way back to mutable ones.

They guard against accident, not malice: ``dict.__setitem__(frozen, …)`` still works, and is how the package fills them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, SupportsIndex

from dsh_hookspecs import JsonValue

_new_dict: Callable[[type[FrozenDict]], FrozenDict] = dict.__new__
_new_list: Callable[[type[FrozenList]], FrozenList] = list.__new__
_fill_dict = dict.update
_fill_list = list.extend


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(f"a {type(self).__name__} cannot be changed; thaw() gives a mutable copy")


def _refuse_new(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(f"a {type(self).__name__} cannot be built or filled by hand; snapshot_json() makes one")


class FrozenDict(dict[str, Any]):
    """A JSON object that reads, compares and dumps like a plain dict and refuses every change."""

    __slots__ = ()
    __init__ = _refuse_new
    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    __setattr__ = _refuse
    __delattr__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return freeze_dict_shell, (dict(self),)


class FrozenList(list[Any]):
    """A JSON array that reads, compares and dumps like a plain list and refuses every change."""

    __slots__ = ()
    __init__ = _refuse_new
    __setitem__ = _refuse
    __delitem__ = _refuse
    __iadd__ = _refuse
    __imul__ = _refuse
    __setattr__ = _refuse
    __delattr__ = _refuse
    append = _refuse
    clear = _refuse
    extend = _refuse
    insert = _refuse
    pop = _refuse
    remove = _refuse
    reverse = _refuse
    sort = _refuse

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: object) -> FrozenList:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return freeze_list_shell, (list(self),)


class OpenDict(dict[str, Any]):
    """An object that can still be filled in. Assigning its ``__class__`` makes it a :class:`FrozenDict` in place."""

    __slots__ = ()


class OpenList(list[Any]):
    """An array that can still be filled in. Assigning its ``__class__`` makes it a :class:`FrozenList` in place."""

    __slots__ = ()


def freeze_dict_shell(source: dict[str, Any]) -> FrozenDict:
    """Wrap a dict whose content is frozen already, or will be before anybody sees the result."""
    out = _new_dict(FrozenDict)
    _fill_dict(out, source)
    return out


def freeze_list_shell(source: Iterable[Any]) -> FrozenList:
    """Wrap items that are frozen already, or will be before anybody sees the result."""
    out = _new_list(FrozenList)
    _fill_list(out, source)
    return out


def thaw(value: JsonValue) -> Any:
    """Copy a JSON value into plain, mutable dicts and lists; what was shared in it is shared in the copy."""
    if not isinstance(value, (dict, list, tuple)):
        return value
    root = _shell(value)
    copies = {id(value): root}
    pending = [root]
    while pending:
        target = pending.pop()
        for key, child in _entries(target):
            if isinstance(child, (dict, list, tuple)):
                copy = copies.get(id(child))
                if copy is None:
                    copy = copies[id(child)] = _shell(child)
                    pending.append(copy)
                target[key] = copy
    return root


def _shell(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else list(value)


def _entries(container: Any) -> Iterator[tuple[Any, Any]]:
    return iter(container.items()) if isinstance(container, dict) else enumerate(container)


def deeper_than(value: JsonValue, limit: int) -> bool:
    """Tell whether containers nest more than ``limit`` levels deep, looking at each once per level."""
    level = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level:
        depth += 1
        if depth > limit:
            return True
        level = _next_level(level)
    return False


def _next_level(level: list[Any]) -> list[Any]:
    children: dict[int, Any] = {}
    for container in level:
        for child in container.values() if isinstance(container, dict) else container:
            if isinstance(child, (dict, list)):
                children[id(child)] = child
    return list(children.values())
