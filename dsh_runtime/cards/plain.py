"""A card as plain text: for pipes, logs and whoever has no terminal."""

from __future__ import annotations

from dsh_runtime.cards.model import Card, text_of


def to_text(card: Card) -> str:
    """The title, the rows, the status, each on lines of its own; nothing is folded."""
    rows = [text_of(row.gutter) + text_of(row.body) for row in card.rows]
    title, status = text_of(card.title), text_of(card.status)
    return "".join(f"{line.rstrip()}\n" for line in (*_if_any(title), *rows, *_if_any(status)))


def _if_any(line: str) -> tuple[str, ...]:
    return (line,) if line.strip() else ()
