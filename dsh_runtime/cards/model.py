"""A card: what a UI draws for one view, as rows of safe and bounded text whose pieces name their style."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

Style: TypeAlias = Literal[
    "plain", "title", "path", "number", "key", "added", "removed", "note", "good", "warn", "bad", "escape"
]


@frozen
class Span:
    """A piece of text in one style."""

    text: str
    style: Style = "plain"


@frozen
class Row:
    """One line. The ``gutter`` stands in front of it, and stays free where the line is folded.

    ``prose`` is folded between words, anything else wherever the width ends. ``cut`` marks the note that something was
    left out.
    """

    body: tuple[Span, ...]
    gutter: tuple[Span, ...] = ()
    prose: bool = False
    cut: bool = False


@frozen
class Card:
    """A view made ready to be drawn.

    ``card`` is the view's tag, ``title`` its first line, ``status`` how the call ended (empty while it is pending).
    ``whole`` is false if something was left out, or cannot be shown.
    """

    card: str
    title: tuple[Span, ...]
    rows: tuple[Row, ...] = ()
    status: tuple[Span, ...] = ()
    whole: bool = True


def _positive(instance: object, attribute: object, value: int) -> None:
    if value < 1:
        raise ValueError(f"the bounds of a card are counts above 0, not {value!r}; leave a bound out for its default")


@frozen
class Bounds:
    """How much of a view a card holds: rows, columns of one row before it is folded, bytes of all rows."""

    lines: int = field(default=120, validator=_positive)
    columns: int = field(default=500, validator=_positive)
    bytes: int = field(default=32 * 1024, validator=_positive)


def text_of(spans: tuple[Span, ...]) -> str:
    """The text of some spans, without their styles."""
    return "".join(span.text for span in spans)


def note(text: str, *, cut: bool = False) -> Row:
    """A remark of the card's own."""
    return Row((Span(text, "note"),), prose=True, cut=cut)
