"""Values in a text that stand behind the name of a secret: ``password=…``, ``"apiKey": "…"``, ``--token …``.

Strategy: stems that all secret names hold are searched for, together with what may separate a name from its value.
Only then is the whole name read, judged, and the value measured. Each step looks at a bounded stretch, or at one that
ends where the value does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

from dsh_plugin_redact._keys import KeyNames, Secrecy, letters
from dsh_plugin_redact._leaves import Leaf, leaves, opens
from dsh_plugin_redact._mask import KIND, Span, is_mask
from dsh_plugin_redact._neighbours import behind_names, behind_options, in_front_of_names, in_pairs

KIND_OF_PAIRS: Final = "secret"

#: One of these stands in the name of every secret.
_STEMS: Final = (
    *("pass", "pwd", "secret", "token", "cookie", "authoriz", "credential", "session", "key", "jwt"),
    *("sharedaccess", "connectionstring", "connection_string"),
)
#: One of these stands behind the name, or in front of it: where only a blank separates it from its value. The next two
#: separate it from its value in a list; then come ``=`` and ``:`` in the escapes of URLs and of JSON.
_SEPARATORS: Final = ("=", ":", ">", "--", '",', "',", "%3", "\\u003")
_NAME: Final = "abcdefghijklmnopqrstuvwxyz0123456789_.-"
_LONGEST_NAME: Final = 64
#: Headers whose value is the rest of the line.
_HEADERS: Final = frozenset(["authorization", "proxy-authorization", "cookie", "set-cookie"])
#: Values that are none: what code, schemas and templates write in a secret's place.
_STAND_INS: Final = (
    r"none|null|nil|true|false|undefined|required|optional|str|string|bytes|int|integer|number|bool|boolean|any"
    r"|\$\{\w{1,64}\}|(?-i:\$[A-Z_]{2,64})|%\w{1,64}%|\{\{? ?[\w.-]{1,64} ?\}\}?|\*{1,64}|\.{2,64}|x{3,64}"
    r"|(?:os\.)?(?:environ(?:\.get)?[\[(]|getenv\()|process\.env\.\w{1,64}"
)

_IN_LISTS: Final = (in_pairs, behind_options)


class Pairs:
    """Finds the values of secret names in texts; ``own`` are further names."""

    def __init__(self, names: KeyNames, own: tuple[str, ...] = ()) -> None:
        self._names = names
        self._own = tuple((re.compile(stem), stem) for stem in map("[_.-]?".join, map(letters, own)))
        self._pattern = lru_cache(maxsize=256)(_pair_pattern)

    def possible(self, folded: str) -> tuple[str, ...]:
        """The stems of secret names that a text in lower case may hold together with a value; of most texts, none."""
        for separator in _SEPARATORS:
            if separator in folded:
                break
        else:
            return ()
        stems = [stem for stem in _STEMS if stem in folded]
        if self._own:
            stems += [stem for pattern, stem in self._own if pattern.search(folded) is not None]
        return tuple(stems)

    def find(self, text: str, folded: str, stems: tuple[str, ...]) -> Iterator[Span]:
        """The values behind names with one of ``stems``; ``folded`` is ``text`` in lower case, position by position.

        Few stems make a search that is several times as fast as one for all.
        """
        covered = 0
        for match in self._pattern(stems).finditer(folded):
            if match.start() < covered:  # Within a value that is masked: measuring it again could take for ever.
                continue
            start, end = _name_start(folded, match.start()), match.end(1)
            name = text[start:end]
            if not _separates(folded, start, match[2]) or (secrecy := self._names.secrecy(name)) is Secrecy.NONE:
                continue
            spans, measured = _secrets(text, name.strip("-_."), match.end(), secrecy)
            covered = max(covered, measured)
            yield from spans
        yield from self._neighbours(text, folded)

    def _neighbours(self, text: str, folded: str) -> Iterator[Span]:
        """The values that have a secret name beside them."""
        for find in (behind_names, in_front_of_names, in_pairs, behind_options):
            covered = 0
            for name, start, end in find(text, folded):
                if start < covered or (secrecy := self._names.secrecy(name)) is Secrecy.NONE:
                    continue
                span, covered = _beside(text, name, start, end, secrecy, quoted=find in _IN_LISTS)
                if span is not None:
                    yield span


def _separates(folded: str, start: int, separator: str) -> bool:
    """Whether what stands behind a name separates it from a value there."""
    if separator == ">":
        return start > 0 and folded[start - 1] == "<"
    return separator.strip() != "" or folded.startswith("--", start)


def _name_start(folded: str, stem: int) -> int:
    front = folded[max(0, stem - _LONGEST_NAME) : stem]
    return stem - len(front) + len(front.rstrip(_NAME))


def _secrets(text: str, name: str, position: int, secrecy: Secrecy) -> tuple[list[Span], int]:
    """What is to be masked of the value at ``position``, and up to where it has been measured."""
    header = name.lower() in _HEADERS
    match = (_line_pattern() if header else _value_pattern()).match(text, position)
    if match is not None and match.lastgroup == "bare" and not header and opens(text, position):
        inside, end = leaves(text, position)
        return [span for leaf in inside if (span := _leaf_span(text, name, leaf, secrecy)) is not None], end
    span = _span(text, name, match, secrecy) if match is not None else None
    return ([span], span.end) if span is not None else ([], position)


def _beside(
    text: str, name: str, start: int, end: int | None, secrecy: Secrecy, *, quoted: bool
) -> tuple[Span | None, int]:
    """The span of a value that has its name beside it, and up to where it has been measured."""
    if end is not None:
        return _leaf_span(text, name, Leaf(start, end, True), secrecy), end
    match = _value_pattern().match(text, start)
    if match is None:
        return None, start
    wanted = not quoted or match.lastgroup == "quoted"
    return _span(text, name, match, secrecy) if wanted else None, match.end()


def _leaf_span(text: str, name: str, leaf: Leaf, secrecy: Secrecy) -> Span | None:
    """The span of a scalar below a secret name, if it is to be masked."""
    value = text[leaf.start : leaf.end]
    if not value or is_mask(value) or _is_no_secret(value, name, secrecy):
        return None
    return Span(leaf.start, leaf.end, KIND_OF_PAIRS, 1)


def _span(text: str, name: str, match: re.Match[str], secrecy: Secrecy) -> Span | None:
    """The span of a value that has been measured, if it is to be masked."""
    if match.lastgroup is None:
        return None
    start, end = match.span(match.lastgroup)
    value = text[start:end]
    if match.lastgroup == "bare":
        if _is_no_secret(value, name, secrecy):
            return None
        value = _trimmed(value)
        if not value.strip("()[]{},.: ") or _is_no_secret(value, name, secrecy):
            return None
    return Span(start, start + len(value), KIND_OF_PAIRS, 1) if value and not is_mask(value) else None


def _trimmed(value: str) -> str:
    """A bare value without the punctuation behind it; the bracket that closes a mask stays."""
    bare = value.rstrip(")]},.: ")
    closed = bare + "]"
    return closed if value.startswith(closed) and is_mask(bare[bare.rfind("[") :] + "]") else bare


def _is_no_secret(value: str, name: str, secrecy: Secrecy) -> bool:
    if secrecy is Secrecy.TEXT and value.replace(".", "").isdigit():
        return True
    plain = name.rpartition(".")[2]
    return value in (name, plain, f"self.{plain}") or _stand_in_pattern().fullmatch(value) is not None


def _pair_pattern(stems: tuple[str, ...]) -> re.Pattern[str]:
    """The end of a name that holds one of ``stems``, and what separates it from its value."""
    behind = rf"[a-z0-9_.-]{{0,{_LONGEST_NAME}}}+)(?:\\{{0,7}}[\"']|%2[27])?\]?(?:[ \t]|%20){{0,8}}"
    stem = stems[0] if len(stems) == 1 else f"(?:{'|'.join(stems)})"
    return re.compile(rf"({stem}{behind}(=>|:=|==?|:|>|%3[ad]|\\{{1,7}}u003[ad]|(?<=[ \t]))(?:[ \t]|%20){{0,8}}")


@cache
def _value_pattern() -> re.Pattern[str]:
    """A value: in quotes of whatever depth, in brackets, a YAML block, or bare up to the next blank or separator."""
    return re.compile(
        r"[bBrRuUfF]{0,2}"
        r"(?:(?P<triple>\"\"\"|''')(?P<block>(?:(?!(?P=triple))[\s\S])*+)"
        r"|(?P<quote>\\{0,7}[\"'])(?P<quoted>(?:(?!(?<!\\)(?P=quote))[^\r\n])*+)"
        r"|[|>][0-9+-]{0,2}[ \t]{0,8}\r?\n(?P<scalar>[ \t]++[^\r\n]*+(?:\r?\n[ \t]++[^\r\n]*+)*+)"
        r"|(?P<list>(?!\[redacted: )\[[^\]\[{}]{1,4096}+\]?)"
        rf")|(?P<bare>(?:\[redacted: {KIND}\]|[^\s\"'`&;<>])++)"
    )


@cache
def _line_pattern() -> re.Pattern[str]:
    """A header's value: within quotes, or the rest of the line."""
    return re.compile(
        r"(?P<quote>\\{0,7}[\"'])(?P<quoted>(?:(?!(?<!\\)(?P=quote))[^\r\n])*+)|(?P<bare>[^\r\n\"'`\\]++)"
    )


@cache
def _stand_in_pattern() -> re.Pattern[str]:
    return re.compile(_STAND_INS, re.IGNORECASE)
