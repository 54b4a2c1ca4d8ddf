"""How every view is drawn, at three widths and as plain text, compared with files."""

from __future__ import annotations

import importlib.metadata
import xml.etree.ElementTree as ElementTree

import pytest
from cards_kit import GOLDEN, SHEETS, WIDTHS, drawn

from dsh_runtime.cards import to_svg, to_terminal
from dsh_runtime.cards.width import columns_of

DRAWN = dict(drawn())
RICH = importlib.metadata.version("rich")


@pytest.mark.parametrize("name", [name for name in DRAWN if not name.endswith(".svg")])
def test_text_is_drawn_as_the_golden_file_has_it(name: str) -> None:
    """Run ``python tests/unit/cards/cards_kit.py`` to accept a change."""
    assert DRAWN[name] == (GOLDEN / name).read_text("utf-8")


@pytest.mark.skipif(RICH != "15.0.0", reason="the images hold what this version of rich writes")
@pytest.mark.parametrize("name", [name for name in DRAWN if name.endswith(".svg")])
def test_an_image_is_drawn_as_the_golden_file_has_it(name: str) -> None:
    """Images, too."""
    assert DRAWN[name] == (GOLDEN / name).read_text("utf-8")


def test_there_is_no_golden_file_that_nothing_draws() -> None:
    """Left over from a card that is gone."""
    assert {path.name for path in GOLDEN.iterdir()} == set(DRAWN)


@pytest.mark.parametrize("sheet", SHEETS)
@pytest.mark.parametrize("width", [1, 2, 7, 19, 20, 33, *WIDTHS])
def test_no_line_is_wider_than_the_terminal(sheet: str, width: int) -> None:
    """At any width; a wide character alone may stand out where there is one column."""
    for _, card in SHEETS[sheet]():
        for line in to_terminal(card, width=width).splitlines():
            assert columns_of(line) <= max(width, 2), line


@pytest.mark.parametrize("sheet", SHEETS)
def test_an_image_is_well_formed_and_refers_to_nothing_outside(sheet: str) -> None:
    """Whatever the text."""
    image = to_svg([card for _, card in SHEETS[sheet]()], width=80)
    ElementTree.fromstring(image)
    assert "url(http" not in image
    assert "@font-face" not in image
