"""What a person reads who is asked about a call: the same text whatever the channel.

Everything in it may come from a model or a remote server. So secrets are masked first; then long texts lose their
middle, and say so; then what could steer a terminal, or pass for a line of the question, is written out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import frozen
from dsh_hookspecs import ApprovalRequest, GenericCall, JsonValue, ToolCallView

from dsh_runtime.cards import Bounds, Card, call_card, masked, to_text, visible
from dsh_runtime.services.approval.known import Knowing, Redactor

#: A text within the arguments is shown up to so many characters, and the arguments as a whole up to so many.
_TEXT: Final = 400
_WHOLE: Final = 4000
_LINE: Final = 300
#: What is nested deeper is left out.
_DEPTH: Final = 100
_CARD: Final = Bounds(lines=60, columns=300, bytes=8 * 1024)
_WHOLE_CARD: Final = Bounds(lines=1_000_000, columns=1_000_000, bytes=1 << 30)
_INDENT: Final = 11
_HIDDEN: Final = "(what looks like a secret is masked here, and runs as it was given)"


class _Open:
    """Masks nothing."""

    def text(self, text: str) -> str:
        return text

    def value(self, value: JsonValue) -> JsonValue:
        return value


@frozen
class RequestText:
    """The parts of the question, each masked and safe to print. ``arguments`` has several lines, the texts one each.

    ``card`` is the call's own, where it says more than the arguments. ``complete`` is false where something was left
    out for its length, ``hidden`` true where something of the arguments is masked: whoever answers has to know that
    they do not see all that runs, since what looks like a secret may be anything.
    """

    tool: str
    owner: str | None
    reason: str | None
    card: Card | None
    arguments: str
    complete: bool
    hidden: bool = False

    def lines(self) -> Iterator[str]:
        """The text as a person reads it, line by line."""
        yield from self.heading()
        if self.card is not None:
            yield from _labelled("about", to_text(self.card).splitlines())
        yield from self.ending()

    def heading(self) -> Iterator[str]:
        """What stands before the card."""
        yield from _labelled("tool", [self.tool + (f"  (plugin {self.owner})" if self.owner else "")])
        if self.reason:
            yield from _labelled("reason", [self.reason])

    def ending(self) -> Iterator[str]:
        """What stands behind the card."""
        yield from _labelled("arguments", self.arguments.split("\n"))
        if self.hidden:
            yield from _labelled("", [_HIDDEN])
        if not self.complete:
            yield from _labelled("", ["(this is not all)"])


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"{label:{_INDENT}}{line}".rstrip()
        label = ""


def describe_request(
    request: ApprovalRequest, *, owner: str | None = None, redact: Redactor | None = None, whole: bool = False
) -> RequestText:
    """The text of a request. ``owner`` is the plugin whose tool it is; ``redact`` the service of that name, if any.

    Long arguments lose their middle, unless the ``whole`` is asked for.
    """
    mask = Knowing(redact if redact is not None else _Open(), request.exec.arguments)
    cut = _Cut(not whole)
    line = _Lines(mask, cut)
    card = None
    if request.view is not None and _says_more(request.view, request):
        card = call_card(masked(request.view, mask.value), bounds=_WHOLE_CARD if whole else _CARD)
    return RequestText(
        tool=line.of(request.exec.name),
        owner=line.of(owner) if owner else None,
        reason=line.of(request.reason) if request.reason else None,
        card=card,
        arguments=cut.json(mask.arguments),
        complete=not cut.has_cut and (card is None or card.whole),
        hidden=mask.arguments != request.exec.arguments,
    )


def _says_more(view: ToolCallView, request: ApprovalRequest) -> bool:
    """Whether a view says anything beyond the tool's name and the arguments."""
    return not (
        isinstance(view, GenericCall)
        and view.title == request.exec.name
        and view.raw_input in (None, request.exec.arguments)
        and not view.content
        and not view.locations
    )


@frozen
class _Lines:
    """Makes one safe line of a text."""

    mask: Redactor
    cut: _Cut

    def of(self, text: str) -> str:
        return visible(self.cut.text(" ".join(self.mask.text(text).split()), _LINE))


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
        return "\n".join(map(visible, self.text(shown, _WHOLE).split("\n")))

    def _shortened(self, value: Any, depth: int) -> Any:
        """The value with long texts cut; names of members are not, since two might come to look the same."""
        if isinstance(value, str):
            return self.text(value, _TEXT)
        if not isinstance(value, Mapping | list | tuple):
            return value
        if depth == 0:
            self.has_cut = True
            return "… (deeper)"
        if isinstance(value, Mapping):
            return {key: self._shortened(member, depth - 1) for key, member in value.items()}
        return [self._shortened(item, depth - 1) for item in value]
