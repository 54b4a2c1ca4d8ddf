"""The shipped rules for secrets that are known by their form.

Strategy: a form is a literal and what follows it. Only a text that holds the literal is searched for the form, and
the regular expression begins with the literal, which is what makes both searches fast. Forms are grouped by a rare
character that all their secrets hold; where a text has it, one look at what stands around it tells whether any form of
the group is worth a search. A few such looks clear most texts.

Every form is linear by construction: runs of characters are possessive, and either bounded, or begin at a literal that
cannot stand within such a run (because of what the run is made of, or of what may not stand in front of the literal).
So no stretch of text is scanned by more than one attempt. A test holds each form to that.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from attrs import frozen

_WORD: Final = "A-Za-z0-9"
_TOKEN: Final = "A-Za-z0-9_-"
_DOTTED: Final = "A-Za-z0-9_.~-"


class _Source(NamedTuple):
    """How a form is written down: any of ``literals``, not behind a character of ``before``, then ``rest``.

    The first group of ``rest`` that matches is what is masked, else the whole match, and ``lead`` characters in front.
    Every match holds one of ``marks``; they are the literals, if nothing else is said. A text without ``beside`` has no
    match.
    """

    kind: str
    literals: tuple[str, ...]
    before: str
    rest: str
    cased: bool = True
    lead: int = 0
    marks: tuple[str, ...] = ()
    beside: str = ""


def _each(template: str, *parts: str) -> tuple[str, ...]:
    return tuple(template.format(part) for part in parts)


_GITLAB: Final = ("pat", "dt", "rt", "cbt", "ptt", "ft", "imt", "agent", "oas", "soat", "ffct")
#: The characters that forms are grouped by, the best first; without one of them it is a capital letter, or any.
_SIGNS: Final = "-_.=~:/"

_SOURCES: Final = (
    _Source(
        "private-key",
        ("-----BEGIN ",),
        "",
        # The whole block; without an end, what looks like the body of one.
        r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----))*+-----END [A-Z0-9 ]{0,80}-----|[A-Za-z0-9+/=\s\\]*+)",
    ),
    _Source(
        "aws-key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        "A-Z0-9",
        # The secret that stands right behind its id goes with it.
        r"[A-Z0-9]{16}(?![A-Z0-9])(?:[\s,;:|\"']{1,8}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?",
    ),
    _Source(
        "aws-secret",
        ("access",),
        "",
        r"[ _-]?key(?:[ _-]?id)?\\{0,7}[\"']?[ \t]{0,8}(?:[:=,]|=>|is)?[ \t]{0,8}\\{0,7}[\"']?"
        r"([a-z0-9/+]{40})(?![a-z0-9/+=])",
        cased=False,
    ),
    _Source("gcp-key", ("AIza",), "", r"[A-Za-z0-9_-]{35}"),
    _Source("gcp-key", ("ya29.",), "", rf"[{_TOKEN}]{{20,}}+"),
    _Source("gcp-key", ("GOCSPX-",), _TOKEN, rf"[{_TOKEN}]{{20,}}+"),
    _Source("azure-key", ("sig=",), _WORD, r"([A-Za-z0-9%+/=_-]{20,}+)"),
    _Source("azure-key", ("Q~",), "", rf"(?<=[{_DOTTED}]{{3}}[0-9]Q~)[{_DOTTED}]{{31,34}}(?![{_DOTTED}])", lead=4),
    _Source("github-token", ("gh",), "", r"[pousr]_[A-Za-z0-9]{36,}+", marks=_each("gh{}_", *"pousr")),
    _Source("github-token", ("github_pat_",), "A-Za-z0-9_", r"[A-Za-z0-9_]{22,}+"),
    _Source(
        "gitlab-token",
        ("gl",),
        _DOTTED,
        rf"(?:{'|'.join(_GITLAB)})-[{_DOTTED}]{{20,}}+",
        marks=_each("gl{}-", *_GITLAB),
    ),
    _Source("bitbucket-token", ("ATBB", "ATCTT3", "ATATT3"), _TOKEN, r"[A-Za-z0-9_=-]{24,}+"),
    # Without a digit it is a name: task-, sk-fading-circle.
    _Source("model-key", ("sk-",), _TOKEN, rf"(?=[A-Za-z_-]{{0,200}}[0-9])[{_TOKEN}]{{16,}}+"),
    _Source("model-key", ("gsk_", "hf_", "r8_"), _WORD, r"[A-Za-z0-9]{20,}+"),
    _Source("model-key", ("xai-", "pplx-", "nvapi-", "tvly-"), _TOKEN, rf"[{_TOKEN}]{{20,}}+"),
    _Source(
        "slack-token",
        ("xox",),
        "A-Za-z0-9-",
        r"(?:[a-eoprs]|e\.xoxp)-[A-Za-z0-9-]{10,}+",
        marks=_each("xox{}-", *"abcdeoprs", "e.xoxp"),
    ),
    _Source("slack-token", ("xapp-",), "A-Za-z0-9-", r"[A-Za-z0-9-]{10,}+"),
    _Source("slack-token", ("hooks.slack.com/",), "", r"(?:services|workflows|triggers)/([A-Za-z0-9/_-]{16,}+)"),
    _Source("json-web-token", ("eyJ",), _TOKEN, rf"[{_TOKEN}]{{8,}}+(?:\.[{_TOKEN}]*+){{2,4}}"),
    _Source("service-token", ("k_live_", "k_test_"), "", r"(?<=[rs]k_(?:live|test)_)[A-Za-z0-9]{16,}+", lead=1),
    _Source("service-token", ("whsec_", "npm_"), _WORD, r"[A-Za-z0-9]{16,}+"),
    _Source("service-token", ("pypi-A", "dckr_pat_", "dop_v1_"), _TOKEN, rf"[{_TOKEN}]{{20,}}+"),
    _Source("service-token", ("hvs.",), _DOTTED, rf"[{_TOKEN}]{{24,}}+"),
    _Source("service-token", ("SG.",), _DOTTED, rf"[{_TOKEN}]{{16,}}+\.[{_TOKEN}]{{16,}}+"),
    _Source(
        "bearer-credential",
        ("bearer",),
        "a-z0-9",
        # Short ones hold a digit: "bearer authentication" is none.
        r"(?:[ \t]|%20|\+){1,8}(?:(?=[a-z._~+/-]{0,256}[0-9])([a-z0-9._~+/-]{8,}+={0,2})|([a-z0-9._~+/-]{20,}+={0,2}))",
        cased=False,
    ),
    _Source(
        "basic-credential",
        ("basic",),
        "a-z0-9",
        r"(?:[ \t]|%20|\+){1,8}((?:[a-z0-9+/]|%2[bf]){6,}+(?:=|%3d){0,2})(?![a-z0-9+/=])",
        cased=False,
    ),
    # As Docker and npm keep them.
    _Source(
        "basic-credential",
        ("_auth", 'auth"', "auth\\"),
        "",
        r"(?:\\{0,7}[\"'])?[ \t]{0,8}[:=][ \t]{0,8}(?:\\{0,7}[\"'])?([a-z0-9+/]{8,}+={0,2})(?![a-z0-9+/=])",
        cased=False,
    ),
    _Source(
        "url-password",
        ("://",),
        "",
        # The password of a user, or a token in the user's place.
        r"(?:[^\s/?#@:\"'<>]{0,256}:([^\s/\"'<>]{1,1024})"
        r"|(?=[^\s/?#@:0-9]{0,256}[0-9])([^\s/?#@:\"'<>]{20,256}))@",
    ),
    _Source(
        "basic-credential",
        ("-u", "--user", "--proxy-user"),
        "a-z0-9-",
        r"(?:[ \t\"',=]|\\){0,12}[^\s:\"'\\]{1,64}:([^\s\"'\\]{1,256})",
        cased=False,
        beside="curl",
    ),
    # The password of a URL in the escapes of another one.
    _Source(
        "url-password",
        ("%3a%2f%2f",),
        "",
        r"(?:[^\s%&\"'<>]{0,256}%3a((?:[^\s%&\"'<>]|%(?!2f|40)){1,1024}+)"
        r"|(?=[^\s%&0-9]{0,256}[0-9])([^\s%&\"'<>]{20,256}+))%40",
        cased=False,
    ),
)


@frozen
class Form:
    """A secret known by its form; a text without ``literal`` and ``beside`` has none."""

    kind: str
    literal: str
    beside: str
    pattern: re.Pattern[str]
    lead: int
    accepts: Callable[[str], bool] | None

    def find(self, text: str, searched: str) -> Iterator[tuple[int, int]]:
        """Where the secrets are; ``searched`` is the text in the case of the form, position by position."""
        for match in self.pattern.finditer(searched):
            start, end = match.span(match.lastindex or 0)
            if self.accepts is None or self.accepts(text[start:end]):
                yield start - self.lead, end


@frozen
class _Group:
    """Forms whose secrets all hold ``sign``; ``look`` finds a place where one of theirs may be."""

    sign: str
    look: Callable[[str], object]
    forms: tuple[Form, ...]


@frozen
class Forms:
    """The forms of a redactor, and a quick way to tell that a text has none of them."""

    _groups: tuple[_Group, ...]

    def possible(self, text: str) -> list[Form]:
        """The forms that are worth a search; for most texts, none."""
        found: list[Form] = []
        for group in self._groups:
            if group.sign in text and group.look(text):
                found += [form for form in group.forms if form.literal in text and form.beside in text]
        return found


def kinds() -> tuple[str, ...]:
    """The names of the shipped rules, each once, in order."""
    return tuple(dict.fromkeys(source.kind for source in _SOURCES))


def forms(*, cased: bool, without: frozenset[str] = frozenset()) -> Forms:
    """The shipped forms that tell upper and lower case apart, or those that do not."""
    groups: dict[str, tuple[list[str], list[Form]]] = {}
    for source in _SOURCES:
        if source.cased is cased and source.kind not in without:
            made = tuple(_compiled(source))
            for mark in source.marks or source.literals:
                marks, members = groups.setdefault(_sign(mark), ([], []))
                marks.append(mark)
                members += [form for form in made if form not in members and (source.marks or form.literal == mark)]
    return Forms(tuple(_Group(sign, _look(sign, marks), tuple(members)) for sign, (marks, members) in groups.items()))


def _sign(mark: str) -> str:
    """The character of a mark that is the rarest in texts."""
    rare = (char for char in (*_SIGNS, *filter(str.isupper, mark)) if char in mark)
    return next(rare, mark[0])


def _look(sign: str, marks: list[str]) -> Callable[[str], object]:
    """Finds one of ``marks``. The pattern begins with the sign, which is found at the speed of memory."""
    ways = "|".join(_around(sign, mark) for mark in marks)
    return re.compile(f"{re.escape(sign)}(?:{ways})").search


def _around(sign: str, mark: str) -> str:
    """What stands in front of the sign that has just been read, and behind it."""
    front, _, behind = mark.partition(sign)
    return f"(?<={re.escape(front + sign)}){re.escape(behind)}" if front else re.escape(behind)


def _compiled(source: _Source) -> Iterator[Form]:
    encoded = source.kind == "basic-credential" and not source.beside
    accepts = _is_user_and_password if encoded else None
    for literal in source.literals:
        begin = re.escape(literal)
        alone = f"(?<![{source.before}]{begin})" if source.before else ""
        pattern = re.compile(begin + alone + source.rest)
        yield Form(source.kind, literal, source.beside, pattern, source.lead, accepts)


def _is_user_and_password(encoded: str) -> bool:
    """Whether base64 holds a colon, as basic credentials do and the word behind ``Basic`` in a sentence does not."""
    for escape, char in (("%2b", "+"), ("%2B", "+"), ("%2f", "/"), ("%2F", "/"), ("%3d", "="), ("%3D", "=")):
        encoded = encoded.replace(escape, char)
    head = encoded.rstrip("=")[:1024]
    try:
        return b":" in base64.b64decode(head + "=" * (-len(head) % 4))
    except (binascii.Error, ValueError):
        return False
