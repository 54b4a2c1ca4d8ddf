"""Which card is shown for what: a completed view takes the place of the pending one."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

from attrs import frozen
from dsh_hookspecs import (
    ApprovalRequest,
    DiffCall,
    GenericCall,
    GenericResult,
    ReadResult,
    TerminalCall,
    TerminalResult,
)

from dsh_runtime import ToolExecutionSuccess, define_tool, present_call, present_result
from dsh_runtime.cards import Bounds, approval_card, call_card, result_card, to_text
from dsh_runtime.tools.presentation import DurableResult

RAW = [{"type": "text", "text": "raw content"}]
PENDING = GenericCall("the pending title")


@frozen
class HologramResult:
    """A view of a newer version."""

    card = "hologram"
    title = "a new title"


def test_a_completed_view_brings_its_own_title_or_keeps_the_pending_one() -> None:
    """An empty title is one of its own."""
    assert to_text(result_card(TerminalResult(title="done", output="x"), pending=PENDING)) == "done\nx\n"
    assert to_text(result_card(TerminalResult(output="x"), pending=PENDING)) == "the pending title\nx\n"
    assert to_text(result_card(TerminalResult(title="", output="x"), pending=PENDING)) == "x\n"


def test_no_completed_view_keeps_the_pending_title_and_the_raw_content() -> None:
    """The same for a generic view without content."""
    for view in (None, GenericResult()):
        assert to_text(result_card(view, pending=PENDING, content=RAW)) == "the pending title\nraw content\n"
    own = GenericResult(content=[{"type": "text", "text": "own"}])
    assert to_text(result_card(own, pending=PENDING, content=RAW)) == "the pending title\nown\n"


def test_an_unknown_card_shows_the_raw_content() -> None:
    """Under its own title and tag."""
    view: Any = HologramResult()
    card = result_card(view, pending=PENDING, content=RAW)
    assert (card.card, to_text(card)) == ("hologram", "a new title\nraw content\n")


def test_an_unknown_pending_card_says_that_it_cannot_be_shown() -> None:
    """It is never whole, so nobody approves it unseen."""
    view: Any = HologramResult()
    card = call_card(view)
    assert not card.whole
    assert to_text(card) == "a new title\na card of kind 'hologram' cannot be shown here\n"


def test_a_command_keeps_its_prompt_while_its_title_stays() -> None:
    """A title of another kind has none."""
    assert to_text(result_card(TerminalResult(exit_code=3), pending=TerminalCall("ls"))) == "$ ls\nexit 3\n"
    assert to_text(result_card(TerminalResult(title="ls"), pending=TerminalCall("ls"))) == "ls\n"


def test_a_failed_call_says_so() -> None:
    """Whatever its view."""
    assert to_text(result_card(None, pending=PENDING, content=RAW, is_error=True)).endswith("raw content\nfailed\n")


def test_a_window_without_lines_shows_its_content() -> None:
    """Of an image, say."""
    view = ReadResult("a.png", 1, [], 0, content=[{"type": "image", "data": "AAAA", "mimeType": "image/png"}])
    assert to_text(result_card(view)) == "a.png\n[image, image/png, 3 bytes]\n"


def test_locations_that_a_diff_names_are_not_repeated() -> None:
    """None are left here."""
    assert to_text(call_card(DiffCall("t", []))) == "t\nno line changes\n"


def request(view: Any, **arguments: Any) -> ApprovalRequest:
    """A question about a call of the tool ``mail``."""
    execution: Any = SimpleNamespace(name="mail", arguments=arguments)
    return ApprovalRequest(execution, "it leaves the house", view, digest="ab" * 32)


def test_a_question_names_the_tool_whatever_title_it_gives_itself() -> None:
    """Reason, card, digest."""
    card = approval_card(request(GenericCall("harmless", raw_input={"to": "eve"})))
    assert to_text(card) == 'allow mail?\nit leaves the house\nharmless\nto: "eve"\ndigest abababababababab\n'
    assert card.whole


def test_a_question_without_a_view_shows_the_arguments() -> None:
    """All of them."""
    assert 'to: "eve"' in to_text(approval_card(request(None, to="eve")))


def test_a_question_that_does_not_show_everything_says_so() -> None:
    """A person must know what they do not see."""
    card = approval_card(request(GenericCall("t", raw_input={"x": "line\n" * 99})), bounds=Bounds(lines=9))
    assert not card.whole
    assert "Not everything is shown" in to_text(card)


def test_a_projector_that_fails_falls_back_to_the_generic_card() -> None:
    """Pending and completed."""

    def fail(*args: Any) -> Any:
        raise RuntimeError("no")

    tool = define_tool(
        name="mail", description="", parameters={}, output={"type": "string"}, execute=lambda args: "",
        present_call=fail, present_result=lambda args, result: "no view",
    )  # fmt: skip
    execution: Any = SimpleNamespace(name="mail", arguments={"to": "eve"})
    assert to_text(call_card(present_call(tool, execution))) == 'mail\nto: "eve"\n'
    result = DurableResult.of(ToolExecutionSuccess("", RAW))
    assert to_text(result_card(present_result(tool, {}, result), pending=PENDING)) == "the pending title\nraw content\n"


def test_plain_cards_load_neither_rich_nor_the_host() -> None:
    """A log writer needs no terminal."""
    program = (
        "import sys; from dsh_hookspecs import GenericCall; from dsh_runtime.cards import call_card, to_text\n"
        "to_text(call_card(GenericCall('t')))\n"
        "heavy = {'rich', 'trio', 'click', 'dsh_runtime.loader', 'dsh_runtime.cli', 'dsh_runtime.tools'}\n"
        "print(*heavy & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
