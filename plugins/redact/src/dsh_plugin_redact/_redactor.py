"""The service ``redact``: masks texts and JSON values.

Strategy: each rule says which stretches of a text are secret; overlapping ones become one mask. Masking can bring to
light what a rule refused before (a token behind a token), so a text in which something was found is looked at again,
until nothing more is. This also makes masking idempotent: what comes out has been looked at, and left as it is.

Most values hold nothing that any rule would look at twice. That is found out first, for all texts of a value together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dsh_hookspecs import JsonValue

from dsh_plugin_redact._forms import Forms
from dsh_plugin_redact._keys import KeyNames, Secrecy
from dsh_plugin_redact._mask import Span, is_mask, mask, put_masks
from dsh_plugin_redact._own import OwnRule, RuleTimeoutError
from dsh_plugin_redact._pairs import KIND_OF_PAIRS, Pairs

#: No secret is shorter, with the name or the literal that gives it away.
_SHORTEST: Final = 5
_ROUNDS: Final = 8
_UNSETTLED: Final = "text"
_TOO_DEEP: Final = "nested-too-deeply"
#: How many names of members are remembered as harmless, and of what length.
_REMEMBERED: Final = 4096
_LONGEST_NAME: Final = 64
#: Longer texts are looked at one by one, so that they need not be copied.
_LONG: Final = 4096
_TELLING_NOTHING: Final = frozenset([bool, int, float, type(None)])
#: Members that say what their neighbour is: ``{"name": "DB_PASSWORD", "value": "…"}``.
_NAMING: Final = ("name", "key", "header", "Name", "Key", "Header")
_NAMED: Final = ("value", "Value")


class Redactor:
    """Masks secrets in texts and JSON values. Made by :func:`build_redactor`."""

    def __init__(
        self,
        cased: Forms,
        uncased: Forms,
        names: KeyNames | None,
        pairs: Pairs | None,
        own: Sequence[OwnRule] = (),
    ) -> None:
        self._cased = cased
        self._uncased = uncased
        self._names = names
        self._pairs = pairs
        self._own = tuple(own)
        self._harmless: set[str] = set()

    def text(self, text: str) -> str:
        """``text`` with every secret masked; the very same text if there is none."""
        if len(text) < _SHORTEST and not self._own:
            return text
        try:
            for _ in range(_ROUNDS):
                spans = list(self._spans(text))
                masked = put_masks(text, spans) if spans else text
                if masked is text:
                    return text
                text = masked
        except RuleTimeoutError as timeout:
            return mask(f"{timeout.kind}-timed-out")
        return mask(_UNSETTLED)

    def value(self, value: JsonValue) -> JsonValue:
        """A masked copy of a JSON value; the very same value if there is no secret in it."""
        if self._is_plain(value):
            return value
        try:
            return self._value(value)
        except RecursionError:
            return mask(_TOO_DEEP)

    def _is_plain(self, value: JsonValue) -> bool:
        """Whether a value certainly holds no secret: no rule has anything to look at in its texts and names."""
        if self._own:
            return False
        texts: list[str] = []
        waiting: list[JsonValue] = [value]
        for item in waiting:  # It grows meanwhile.
            if isinstance(item, str):
                texts.append(item)
            elif isinstance(item, dict):
                if not (self._harmless.issuperset(item) or self._learn(item)):
                    return False
                if "value" in item and self._named_secrecy(item) is not Secrecy.NONE:
                    return False
                waiting += item.values()
            elif isinstance(item, (list, tuple)):
                if self._has_secret_pairs(item):
                    return False
                waiting += item
            elif type(item) not in _TELLING_NOTHING:
                return False
        if len(texts) > 1 and sum(map(len, texts)) <= _LONG:
            texts = ["\n".join(texts)]
        return not any(map(self._is_suspicious, texts))

    def _is_suspicious(self, text: str) -> bool:
        """Whether any rule would look twice; a part of what is not suspicious is not, either."""
        if self._cased.possible(text):
            return True
        folded = _folded(text)
        if self._uncased.possible(folded):
            return True
        return self._pairs is not None and bool(self._pairs.possible(folded))

    def _learn(self, names: Iterable[str]) -> bool:
        """Whether no name of a member is that of a secret, or one itself; such names are remembered, within bounds."""
        for name in names:
            if self._secrecy(name) is not Secrecy.NONE or self.text(name) is not name or name == "Value":
                return False
            if len(name) <= _LONGEST_NAME:
                if len(self._harmless) >= _REMEMBERED:
                    self._harmless = set()
                self._harmless.add(name)
        return True

    def _spans(self, text: str) -> Iterator[Span]:
        for form in self._cased.possible(text):
            for start, end in form.find(text, text):
                yield Span(start, end, form.kind)
        folded = _folded(text)
        for form in self._uncased.possible(folded):
            for start, end in form.find(text, folded):
                yield Span(start, end, form.kind)
        stems = self._pairs.possible(folded) if self._pairs is not None else ()
        if self._pairs is not None and stems:
            yield from self._pairs.find(text, folded, stems)
        for rule in self._own:
            yield from rule.find(text)

    def _value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, Sequence):
            masked = [*map(self._pair, value)] if self._has_secret_pairs(value) else [*self._items(value)]
            return masked if _changed(masked, value) else value
        return value

    def _items(self, items: Sequence[JsonValue]) -> Iterator[JsonValue]:
        """The items of a list, which may be the words of a command: ``["--password", "…"]``."""
        secrecy = Secrecy.NONE
        for item in items:
            is_option = isinstance(item, str) and item.startswith("--")
            yield self._value(item) if is_option or secrecy is Secrecy.NONE else self._hidden(item, secrecy)
            secrecy = self._option_secrecy(item) if isinstance(item, str) and is_option else Secrecy.NONE

    def _option_secrecy(self, word: str) -> Secrecy:
        """How secret the word behind an option is; one that has its value behind ``=`` is none that waits for it."""
        name = word[2:]
        plain = len(name) <= _LONGEST_NAME and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        return self._secrecy(name) if plain else Secrecy.NONE

    def _has_secret_pairs(self, items: Sequence[Any]) -> bool:
        """Whether a list is one of pairs, as headers are kept, and one of them is named like a secret."""
        if not items or not isinstance(items[0], (list, tuple)) or self._names is None:
            return False
        return all(map(_is_pair, items)) and any(self._secrecy(item[0]) is not Secrecy.NONE for item in items)

    def _pair(self, pair: Any) -> JsonValue:
        """A name and its value in a list of such."""
        name, item = pair
        secrecy = self._secrecy(name)
        masked = [self.text(name), self._value(item) if secrecy is Secrecy.NONE else self._hidden(item, secrecy)]
        return masked if _changed(masked, pair) else pair

    def _mapping(self, mapping: Mapping[str, JsonValue]) -> JsonValue:
        named = self._named_secrecy(mapping)
        masked: dict[str, JsonValue] = {}
        for key, item in mapping.items():
            secrecy = named if key in _NAMED and named is not Secrecy.NONE else self._secrecy(key)
            kept = self._value(item) if secrecy is Secrecy.NONE else self._hidden(item, secrecy)
            masked[_free(masked, self.text(key))] = kept
        same = all(a is b for a, b in zip(masked, mapping, strict=True))
        return mapping if same and not _changed(masked.values(), mapping.values()) else masked

    def _named_secrecy(self, mapping: Mapping[str, JsonValue]) -> Secrecy:
        """How secret the member ``value`` is, by what its neighbours call it."""
        if any(name in mapping for name in _NAMED):
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


def _is_pair(item: JsonValue) -> bool:
    return isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str)


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
