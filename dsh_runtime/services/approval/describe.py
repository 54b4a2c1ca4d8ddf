"""What a person reads who is asked about a call: the same text whatever the channel.

Everything in it may come from a model or a remote server. So secrets are masked first; then what could steer a
terminal, or pass for a line of the question, is written out; then long texts lose their middle, and say so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from attrs import frozen
from dsh_hookspecs import ApprovalRequest, DiffCall, FileDiff, GenericCall, JsonValue, TerminalCall

#: A text within the arguments is shown up to so many characters, and the arguments as a whole up to so many.
_TEXT: Final = 400
_WHOLE: Final = 4000
_LINE: Final = 300
#: What is nested deeper is left out.
_DEPTH: Final = 100

_UNSEEN: Final = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Characters that are not seen, or change how others are: controls, directions, empty widths, halves of pairs."""


class Redactor(Protocol):
    """The service ``redact``: gives masked copies."""

    def text(self, text: str) -> str: ...
    def value(self, value: JsonValue) -> JsonValue: ...


class _Open:
    """Masks nothing."""

    def text(self, text: str) -> str:
        return text

    def value(self, value: JsonValue) -> JsonValue:
        return value


@frozen
class RequestText:
    """The parts of the question, each masked and safe to print. ``arguments`` has several lines, the others one each.

    ``complete`` is false where something was left out for its length.
    """

    tool: str
    owner: str | None
    reason: str | None
    details: tuple[str, ...]
    arguments: str
    complete: bool

    def lines(self) -> Iterator[str]:
        """The text as a person reads it, line by line."""
        yield f"tool       {self.tool}" + (f"  (plugin {self.owner})" if self.owner else "")
        if self.reason:
            yield f"reason     {self.reason}"
        for number, detail in enumerate(self.details):
            yield f"{'about' if number == 0 else '':11}{detail}"
        first, *others = self.arguments.split("\n")
        yield f"arguments  {first}"
        yield from (f"           {line}" for line in others)
        if not self.complete:
            yield "           (this is not all)"


def describe_request(
    request: ApprovalRequest, *, owner: str | None = None, redact: Redactor | None = None, whole: bool = False
) -> RequestText:
    """The text of a request. ``owner`` is the plugin whose tool it is; ``redact`` the service of that name, if any.

    Long arguments lose their middle, unless the ``whole`` is asked for.
    """
    mask: Redactor = redact if redact is not None else _Open()
    cut = _Cut(not whole)
    arguments = cut.json(mask.value(request.exec.arguments))
    line = _Lines(mask, cut)
    return RequestText(
        tool=line.of(request.exec.name),
        owner=line.of(owner) if owner else None,
        reason=line.of(request.reason) if request.reason else None,
        details=tuple(line.of(detail) for detail in _details(request) if detail),
        arguments=arguments,
        complete=not cut.has_cut,
    )


@frozen
class _Lines:
    """Makes one safe line of a text."""

    mask: Redactor
    cut: _Cut

    def of(self, text: str) -> str:
        return self.cut.text(_visible(" ".join(self.mask.text(text).split())), _LINE)


class _Cut:
    """Takes the middle out of what is long, and remembers that it did."""

    def __init__(self, cuts: bool) -> None:
        self._cuts = cuts
        self.has_cut = False

    def text(self, text: str, most: int) -> str:
        """The text, or its beginning and end."""
        if not self._cuts or len(text) <= most:
            return text
        self.has_cut = True
        half = most // 2
        return f"{text[:half]}… [{len(text) - 2 * half} characters] …{text[-half:]}"

    def json(self, value: JsonValue) -> str:
        """A value as readable JSON."""
        shown = json.dumps(self._shortened(value, _DEPTH), indent=2, ensure_ascii=False)
        return self.text(_visible(shown), _WHOLE)

    def _shortened(self, value: Any, depth: int) -> Any:
        """The value with long texts cut; names of members are not, since two might come to look the same."""
        if isinstance(value, str):
            return self.text(value, _TEXT)
        if not isinstance(value, Mapping | list | tuple):
            return value
        if depth == 0:
            self.has_cut = True
            return "…"
        if isinstance(value, Mapping):
            return {key: self._shortened(member, depth - 1) for key, member in value.items()}
        return [self._shortened(item, depth - 1) for item in value]


def _visible(text: str) -> str:
    """The text with every unseen character written out; line breaks stay."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _details(request: ApprovalRequest) -> Iterator[str]:
    """What the pending view says beyond the arguments, a line each."""
    view = request.view
    if view is None:
        return
    if view.title != request.exec.name:
        yield view.title
    if isinstance(view, TerminalCall):
        yield view.description or ""
        yield f"in {view.cwd}" if view.cwd else ""
    elif isinstance(view, DiffCall):
        yield from map(_change, view.diffs)
    elif isinstance(view, GenericCall):
        yield from (f"{place.path}:{place.line}" if place.line else place.path for place in view.locations)


def _change(diff: FileDiff) -> str:
    old = 0 if diff.old_text is None else len(diff.old_text.splitlines())
    new = len(diff.new_text.splitlines())
    return f"{'creates' if diff.old_text is None else 'changes'} {diff.path} ({old} lines become {new})"
