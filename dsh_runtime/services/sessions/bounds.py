"""Sizes of JSON values, and values cut down to a size, without ever making the text of the whole."""

from __future__ import annotations

from typing import Any, Final

from dsh_hookspecs import JsonValue

_CHUNK: Final = 65_536
_DEEPEST: Final = 100
_MARK: Final = "… [cut]"


def weighs_more(value: JsonValue, limit: int) -> bool:
    """Whether a value has more than ``limit`` characters and members; its JSON text is never shorter than that."""
    if not isinstance(value, (dict, list, tuple)):
        return isinstance(value, str) and len(value) > limit
    containers: list[Any] = [value]
    total = 0
    while containers:
        children = containers.pop()
        total += len(children)
        if isinstance(children, dict):
            total += sum(map(len, children))
            children = children.values()
        for child in children:
            if isinstance(child, str):
                total += len(child)
            elif isinstance(child, (dict, list, tuple)):
                containers.append(child)
        if total > limit:
            return True
    return False


def json_size(value: JsonValue) -> int:
    """The length in bytes of a value's compact JSON text, counted piece by piece."""
    pending: list[Any] = [value]
    total = 0
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            total += _text_size(item)
        elif isinstance(item, dict):
            total += 2 + 2 * len(item) - bool(item) + sum(map(_text_size, item))
            pending.extend(item.values())
        elif isinstance(item, (list, tuple)):
            total += 2 + len(item) - bool(item)
            pending.extend(item)
        else:
            total += _scalar_size(item)
    return total


def _text_size(text: str) -> int:
    from json.encoder import encode_basestring

    chunks = (text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK))
    return 2 + sum(len(encode_basestring(chunk).encode("utf-8", "replace")) - 2 for chunk in chunks)


def _scalar_size(value: Any) -> int:
    if value is None or value is True:
        return 4
    return 5 if value is False else len(repr(value))


def cut_down(value: JsonValue, budget: int, *, tail: int = 0) -> Any:
    """A plain copy of a value with at most about ``budget`` characters; what was cut is marked.

    One text takes at most half of the budget, so that a giant in front leaves room for what follows. A text that was
    cut before loses ``tail`` more characters: what stood there may have been the beginning of a secret.
    """
    return _Cutter(budget, tail).cut(value, 0)


class _Cutter:
    """Copies in order until the budget is spent."""

    def __init__(self, budget: int, tail: int) -> None:
        self.left = budget
        self.longest = budget // 2
        self.tail = tail

    def cut(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if not isinstance(value, (dict, list, tuple)):
            self.left -= 8
            return value
        if depth >= _DEEPEST:
            return _MARK
        return self._object(value, depth) if isinstance(value, dict) else self._array(value, depth)

    def _text(self, text: str) -> str:
        if self.tail and text.endswith(_MARK):
            text = text[: -len(_MARK)][: -self.tail] + _MARK
        room = max(0, min(self.left, self.longest))
        self.left -= min(len(text), room) + 2
        return text if len(text) <= room else text[:room] + _MARK

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, child in value.items():
            if self.left <= 0:
                out[_MARK] = len(value) - len(out)
                break
            out[self._text(key)] = self.cut(child, depth + 1)
        return out

    def _array(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        out: list[Any] = []
        for child in value:
            if self.left <= 0:
                out.append(_MARK)
                break
            self.left -= 1
            out.append(self.cut(child, depth + 1))
        return out
