"""Masks that know what a call's arguments have given away.

A password under its own name is easy to tell; in a title that a tool or a policy makes of it, nothing gives it away. So
what was masked in the arguments is masked by what it says wherever else it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from dsh_hookspecs import JsonValue

#: A shorter text may stand anywhere by chance.
_SHORTEST: Final = 4


class Redactor(Protocol):
    """The service ``redact``: gives masked copies."""

    def text(self, text: str) -> str: ...
    def value(self, value: JsonValue) -> JsonValue: ...


class Knowing:
    """A redactor that knows the secrets among some arguments; ``arguments`` are these, masked."""

    def __init__(self, redact: Redactor, arguments: JsonValue) -> None:
        self._redact = redact
        self.arguments = redact.value(arguments)
        found = dict(_differences(arguments, self.arguments))
        self._known = sorted(found.items(), key=lambda pair: -len(pair[0]))

    def text(self, text: str) -> str:
        """The text with its secrets masked."""
        return self._redact.text(self._without_known(text))

    def value(self, value: JsonValue) -> JsonValue:
        """The value with its secrets masked."""
        return self._redact.value(self._replaced(value) if self._known else value)

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._without_known(value)
        if isinstance(value, Mapping):
            return {key: self._replaced(item) for key, item in value.items()}
        return [self._replaced(item) for item in value] if isinstance(value, list | tuple) else value

    def _without_known(self, text: str) -> str:
        for secret, shown in self._known:
            text = text.replace(secret, shown)
        return text


def _differences(value: Any, masked: Any) -> Iterator[tuple[str, str]]:
    """The texts that were masked, and how they look now. Members stand in the same order in both."""
    if value is masked:
        return
    if isinstance(value, str):
        if isinstance(masked, str) and len(value) >= _SHORTEST:
            yield value, masked
    elif isinstance(value, Mapping) and isinstance(masked, Mapping):
        yield from _of_all(value.values(), masked.values())
    elif isinstance(value, list | tuple) and isinstance(masked, list | tuple):
        yield from _of_all(value, masked)


def _of_all(values: Any, masked: Any) -> Iterator[tuple[str, str]]:
    for one, other in zip(values, masked, strict=False):
        yield from _differences(one, other)
