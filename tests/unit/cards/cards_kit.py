"""Views to draw, and the files that hold how they are drawn.

``python tests/unit/cards/cards_kit.py`` writes the golden files anew; look at the difference before you keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from dsh_hookspecs import (
    ApprovalRequest,
    DiffCall,
    DiffResult,
    FileDiff,
    FileLocation,
    GenericCall,
    GenericResult,
    ReadLine,
    ReadResult,
    SearchFile,
    SearchMatch,
    SearchResult,
    TerminalCall,
    TerminalResult,
    WebFetchResult,
    WebSearchResult,
    WebSource,
)

from dsh_runtime.cards import Bounds, Card, approval_card, call_card, result_card, to_svg, to_terminal, to_text

GOLDEN: Final = Path(__file__).parent / "golden"
WIDTHS: Final = (60, 80, 120)

OLD: Final = "import os\n\n\ndef greet(name):\n    return 'Hello ' + name\n\n\nprint(greet('you'))\n"
NEW: Final = OLD.replace("'Hello ' + name", "f'Hello, {name}!'").replace("import os\n\n\n", "")
WIDE: Final = "漢字かな交じり文は幅が二倍になります。"
HOSTILE: Final = (
    "\x1b]0;owned\x07\x1b[2J\x9b31m [red]markup[/red] :smile: user\u202egpj.exe\u2066 zero\u200bwidth \udc80 a"
    + "\u0301" * 20
)
PROSE: Final = "A snippet of several words that is folded between them and never within one, however narrow it is. "


def _calls() -> Iterator[tuple[str, Card]]:
    yield "call_generic", call_card(
        GenericCall(
            title="send_mail",
            kind="other",
            raw_input={
                "to": ["ada@example.org", "bob@example.org"],
                "subject": "Minutes",
                "body": "Dear all,\n\n  here they are.\n",
                "retries": 3,
                "options": {"urgent": False, "attachments": [{"name": "minutes.pdf", "pages": [1, 2, 3]}]},
            },
            locations=[FileLocation("minutes.pdf"), FileLocation("notes.txt", 12)],
        )
    )
    yield "call_terminal", call_card(
        TerminalCall(title="make test \\\n  && make install", description="Build and test. " + PROSE, cwd="/srv/app")
    )
    yield "call_diff", call_card(
        DiffCall(
            title="Edit greet.py",
            diffs=[FileDiff("greet.py", OLD, NEW), FileDiff("new.txt", None, f"{WIDE * 4}\nlast line")],
            locations=[FileLocation("greet.py", 1), FileLocation("other.py", 7)],
        )
    )
    yield "approval", approval_card(
        ApprovalRequest(
            SimpleNamespace(name="shell_run", arguments={"command": "rm -rf build"}),
            "it changes files",
            TerminalCall(title="rm -rf build", cwd="/srv/app"),
            digest="0123456789abcdef" * 4,
        )
    )


def _results() -> Iterator[tuple[str, Card]]:
    command = TerminalCall(title="make test")
    yield "result_generic", result_card(
        GenericResult(),
        pending=GenericCall(title="screenshot"),
        content=[
            {"type": "text", "text": f"The screen shows:\n{WIDE * 5}"},
            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA" * 300, "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside\n"}},
            {"type": "resource_link", "uri": "https://example.org/b", "name": "b"},
            {"type": "hologram"},
        ],
    )
    yield "result_failed", result_card(
        None, pending=GenericCall(title="divide"), content=[{"type": "text", "text": "Error: by zero"}], is_error=True
    )
    yield "result_terminal", result_card(TerminalResult(output="ok\n\tindented\n", exit_code=0), pending=command)
    yield "result_terminal_exit", result_card(
        TerminalResult(title="make test, stopped", output="", exit_code=2), pending=command
    )
    yield "result_terminal_long", result_card(
        TerminalResult(output="".join(f"line {n}\n" for n in range(1, 501)), signal="SIGKILL"),
        pending=command,
        bounds=Bounds(lines=12),
    )
    yield "result_diff", result_card(
        DiffResult(
            [
                FileDiff("a.py", "x = 1\n", "x = 2"),
                FileDiff("a.py", "same\r\n", "same\n"),
                FileDiff("b.py", "".join(f"{n}\n" for n in range(40)), "".join(f"{n}\n" for n in range(41) if n != 20)),
            ]
        ),
        pending=DiffCall(title="Edit two files", diffs=[]),
    )


def _finds() -> Iterator[tuple[str, Card]]:
    lines = [SearchMatch(8, "def main() -> None:"), SearchMatch(1042, "    main()  # " + "x" * 90)]
    matches = [
        SearchFile("src/app.py", lines),
        SearchFile("docs/漢字.md", [SearchMatch(3, WIDE * 3)]),
    ]
    yield "result_search", result_card(SearchResult("matches", True, 340, files=matches, title="main: 340 lines"))
    paths = SearchResult("paths", False, 2, paths=["a/b.py", "a/c.py"])
    yield "result_paths", result_card(paths, pending=GenericCall("*.py"))
    window = [ReadLine(98, "def greet():"), ReadLine(99, "\treturn 1"), ReadLine(100, "# " + "long " * 30)]
    yield "result_read", result_card(ReadResult("src/greet.py", 98, window, 240, lang="python"))
    yield "result_read_nothing", result_card(ReadResult("empty.txt", 9, [], 3, title="Read empty.txt"))
    sources = [
        WebSource("https://example.org/a?b=c#d", "A title", PROSE, "2026-01-31"),
        WebSource("https://example.org/" + "very-long-" * 14),
    ]
    yield "result_web_search", result_card(WebSearchResult(sources, True, "The answer. " + PROSE, title="weather"))
    yield "result_web_fetch", result_card(WebFetchResult("https://example.org", 404, False, title="Fetch"))


def _hostile() -> Iterator[tuple[str, Card]]:
    yield "hostile_call", call_card(GenericCall(title=HOSTILE, raw_input={HOSTILE: HOSTILE, "deep": {"a": [HOSTILE]}}))
    yield "hostile_output", result_card(
        TerminalResult(title="ok\n" + HOSTILE, output=f"50 %\r60 %\n{HOSTILE}\n", signal=HOSTILE)
    )
    yield "hostile_bounds", call_card(
        GenericCall(title="t" * 1_000, raw_input={"text": "word " * 200, "lines": "x\n" * 200}),
        bounds=Bounds(lines=6, columns=70),
    )


SHEETS: Final[dict[str, Callable[[], Iterator[tuple[str, Card]]]]] = {
    "calls": _calls,
    "results": _results,
    "finds": _finds,
    "hostile": _hostile,
}


def drawn() -> Iterator[tuple[str, str]]:
    """The name of each golden file, and what belongs into it."""
    for sheet, cards in SHEETS.items():
        yield f"{sheet}.plain.txt", _sheet(cards, to_text)
        for width in WIDTHS:
            yield f"{sheet}.{width}.txt", _sheet(cards, partial(to_terminal, width=width))
            yield f"{sheet}.{width}.svg", to_svg([card for _, card in cards()], width=width, title=sheet)


def _sheet(cards: Callable[[], Iterator[tuple[str, Card]]], draw: Callable[[Card], Any]) -> str:
    return "\n".join(f"== {name}\n{draw(card)}" for name, card in cards())


def regenerate() -> None:
    """Write every golden file anew, and remove those that nothing draws any more."""
    files = dict(drawn())
    for path in GOLDEN.iterdir():
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (GOLDEN / name).write_text(text, "utf-8")


if __name__ == "__main__":
    regenerate()
