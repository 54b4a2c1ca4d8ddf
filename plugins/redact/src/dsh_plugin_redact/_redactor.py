"""The service ``redact``: masks texts and JSON values.

Strategy: each rule says which stretches of a text are secret; overlapping ones become one mask. Masking can bring to
light what a rule refused before (a token behind a token), so a text in which something was found is looked at again,
until nothing more is. This also makes masking idempotent: what comes out has been looked at, and left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dsh_hookspecs import JsonValue

from dsh_plugin_redact._forms import Form
from dsh_plugin_redact._keys import KeyNames, Secrecy
from dsh_plugin_redact._mask import Span, is_mask, mask, put_masks
from dsh_plugin_redact._own import OwnRule, RuleTimeoutError
from dsh_plugin_redact._pairs import KIND_OF_PAIRS, Pairs

#: No secret is shorter, with the name or the literal that gives it away.
_SHORTEST: Final = 5
_ROUNDS: Final = 8
_UNSETTLED: Final = "text"
_TOO_DEEP: Final = "nested-too-deeply"
#: Members that say what their neighbour ``value`` is: ``{"name": "DB_PASSWORD", "value": "…"}``.
_NAMING: Final = ("name", "key", "header")


class Redactor:
    """Masks secrets in texts and JSON values. Made by :func:`build_redactor`."""

    def __init__(
        self,
        cased: Sequence[Form],
        uncased: Sequence[Form],
        names: KeyNames | None,
        pairs: Pairs | None,
        own: Sequence[OwnRule] = (),
    ) -> None:
        self._cased = tuple((form.literal, form) for form in cased)
        self._uncased = tuple((form.literal, form) for form in uncased)
        self._names = names
        self._pairs = pairs
        self._own = tuple(own)

    def text(self, text: str) -> str:
        """``text`` with every secret masked; the very same text if there is none."""
        if len(text) < _SHORTEST and not self._own:
            return text
        try:
            for _ in range(_ROUNDS):
                masked = put_masks(text, self._spans(text))
                if masked is text:
                    return text
                text = masked
        except RuleTimeoutError as timeout:
            return mask(f"{timeout.kind}-timed-out")
        return mask(_UNSETTLED)

    def value(self, value: JsonValue) -> JsonValue:
        """A masked copy of a JSON value; the very same value if there is no secret in it."""
        try:
            return self._value(value)
        except RecursionError:
            return mask(_TOO_DEEP)

    def _spans(self, text: str) -> Iterator[Span]:
        for form in [form for literal, form in self._cased if literal in text]:
            for start, end in form.find(text, text):
                yield Span(start, end, form.kind)
        folded = _folded(text)
        for form in [form for literal, form in self._uncased if literal in folded]:
            for start, end in form.find(text, folded):
                yield Span(start, end, form.kind)
        if self._pairs is not None:
            yield from self._pairs.find(text, folded)
        for rule in self._own:
            yield from rule.find(text)

    def _value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, Sequence):
            masked = [self._value(item) for item in value]
            return masked if _changed(masked, value) else value
        return value

    def _mapping(self, mapping: Mapping[str, JsonValue]) -> JsonValue:
        named = self._named_secrecy(mapping)
        masked: dict[str, JsonValue] = {}
        for key, item in mapping.items():
            secrecy = named if key == "value" and named is not Secrecy.NONE else self._secrecy(key)
            kept = self._value(item) if secrecy is Secrecy.NONE else self._hidden(item, secrecy)
            masked[_free(masked, self.text(key))] = kept
        same = all(a is b for a, b in zip(masked, mapping, strict=True))
        return mapping if same and not _changed(masked.values(), mapping.values()) else masked

    def _named_secrecy(self, mapping: Mapping[str, JsonValue]) -> Secrecy:
        """How secret the member ``value`` is, by what its neighbours call it."""
        if "value" in mapping:
            for naming in _NAMING:
                name = mapping.get(naming)
                if isinstance(name, str):
                    return self._secrecy(name)
        return Secrecy.NONE

    def _secrecy(self, key: str) -> Secrecy:
        return Secrecy.NONE if self._names is None else self._names.secrecy(key)

    def _hidden(self, value: JsonValue, secrecy: Secrecy) -> JsonValue:
        """The value of a secret name: everything in it that tells something is masked."""
        if isinstance(value, str):
            return value if not value or is_mask(value) else _kept_kind(self.text(value))
        if isinstance(value, Mapping):
            hidden: dict[str, JsonValue] = {}
            for key, item in value.items():
                hidden[_free(hidden, self.text(key))] = self._hidden(item, secrecy)
            same = all(a is b for a, b in zip(hidden, value, strict=True))
            return value if same and not _changed(hidden.values(), value.values()) else hidden
        if isinstance(value, Sequence):
            items = [self._hidden(item, secrecy) for item in value]
            return items if _changed(items, value) else value
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return mask(KIND_OF_PAIRS) if is_number and secrecy is Secrecy.ALL else value


def _kept_kind(masked: str) -> str:
    """The mask of a secret that a form has recognised as a whole, else the one for values of secret names."""
    return masked if is_mask(masked) else mask(KIND_OF_PAIRS)


def _folded(text: str) -> str:
    """``text`` in lower case, position by position."""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.replace("\u0130", "i").lower()


def _changed(items: Iterable[JsonValue], originals: Iterable[JsonValue]) -> bool:
    return not all(item is original for item, original in zip(items, originals, strict=True))


def _free(taken: Mapping[str, JsonValue], key: str) -> str:
    """``key``, numbered if it is taken: two secrets in key position have one mask."""
    number, free = len(taken) + 1, key
    while free in taken:
        free, number = f"{key}#{number}", number + 1
    return free
