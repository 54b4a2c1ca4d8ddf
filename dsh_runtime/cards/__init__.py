"""Cards: what people see of a call. From a view to a card, and from a card to a terminal, a text, an image or JSON.

Layering, lowest first: ``model``; ``width``, ``unseen``, ``lines``; ``page``, ``values``, ``content``, ``diff``;
``draft``; ``generic``, ``terminal``, ``files``, ``search``, ``web``; ``cards``. Beside them ``progress``, ``stored``
and ``masking``. On top ``plain``, and ``rich_form`` and ``render``, which alone import rich, when they are first used.

A card is drawn by whoever shows it: :func:`drawing` for a rich console, :func:`to_text` for a pipe,
:func:`to_terminal` and :func:`to_svg` for a width that is given, :func:`approval_card` for a question to a person.
Everything that a card holds is bounded and safe to print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsh_runtime.cards.cards import approval_card, call_card, result_card
    from dsh_runtime.cards.masking import masked
    from dsh_runtime.cards.model import Bounds, Card, Row, Span, Style
    from dsh_runtime.cards.plain import to_text
    from dsh_runtime.cards.progress import progress_line
    from dsh_runtime.cards.render import to_svg, to_terminal
    from dsh_runtime.cards.rich_form import drawing
    from dsh_runtime.cards.stored import ViewError, view_from_json, view_to_json
    from dsh_runtime.cards.unseen import visible

_HOMES = {
    "cards": "approval_card call_card result_card",
    "rich_form": "drawing",
    "masking": "masked",
    "model": "Bounds Card Row Span Style",
    "plain": "to_text",
    "progress": "progress_line",
    "render": "to_svg to_terminal",
    "stored": "ViewError view_from_json view_to_json",
    "unseen": "visible",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Bounds",
    "Card",
    "Row",
    "Span",
    "Style",
    "ViewError",
    "approval_card",
    "call_card",
    "drawing",
    "masked",
    "progress_line",
    "result_card",
    "to_svg",
    "to_terminal",
    "to_text",
    "view_from_json",
    "view_to_json",
    "visible",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'dsh_runtime.cards' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"dsh_runtime.cards.{home}"), name)


def __dir__() -> list[str]:
    return list(__all__)
