"""The text that a person reads who is asked about a call."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_hookspecs import (
    AbortController,
    ApprovalRequest,
    DiffCall,
    ExecutionToken,
    FileDiff,
    FileLocation,
    GenericCall,
    TerminalCall,
)

from dsh_runtime import describe_request
from dsh_runtime.tools.execution import make_execution

SNEAKY = (
    *("\x1b[2J", "\r", "\x00", "\x9b1A", "\u202e", "\u200b", "\u2066", "\u2028", "\ufeff", "\ud800"),
    *("\U000e0041", "\t\x08"),
)


def request(
    arguments: Any, *, name: str = "sh", reason: str | None = "outside src", view: Any = None
) -> ApprovalRequest:
    call = make_execution("c1", name, arguments, AbortController().signal, None, None, None, ExecutionToken())
    return ApprovalRequest(call, reason, view)


def text_of(*args: Any, redact: Any = None, owner: str | None = None, whole: bool = False, **more: Any) -> str:
    text = describe_request(request(*args, **more), owner=owner, redact=redact, whole=whole)
    return "\n".join(text.lines())


class Redact:
    """Masks one word wherever it stands."""

    def text(self, text: str) -> str:
        return text.replace("hunter2", "****")

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.text(key): self.value(member) for key, member in value.items()}
        return self.text(value) if isinstance(value, str) else value


def test_it_says_which_tool_whose_why_and_with_what() -> None:
    assert text_of({"command": "ls", "n": 1}, owner="shell").splitlines() == [
        "tool       sh  (plugin shell)",
        "reason     outside src",
        "arguments  {",
        '             "command": "ls",',
        '             "n": 1',
        "           }",
    ]


def test_secrets_are_masked_wherever_they_stand() -> None:
    """In arguments, their names, the reason, the view and the tool's name."""
    view = TerminalCall("login hunter2", description="with hunter2", cwd="/hunter2")
    text = text_of({"hunter2": ["x"], "p": "hunter2"}, name="hunter2", reason="hunter2!", view=view, redact=Redact())
    assert "hunter2" not in text
    assert text.count("****") == 7


def test_it_says_that_something_of_what_runs_is_not_shown() -> None:
    """What looks like a secret may be a command."""
    assert text_of({"command": "run hunter2"}, redact=Redact()).endswith(
        "\n           (what looks like a secret is masked here, and runs as it was given)"
    )
    assert "masked" not in text_of({"command": "run"}, reason="not hunter2", redact=Redact())


class RedactKeys(Redact):
    """Masks what stands under one name."""

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: "****" if key == "password" else self.value(member) for key, member in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value


def test_what_the_arguments_give_away_is_masked_where_nothing_else_does() -> None:
    """In a title that a tool makes of it, and in a policy's reason."""
    arguments = {"deep": [{"password": "open sesame"}], "user": "ada", "password": "abc"}
    view = GenericCall(title="Log in as ada with open sesame", content=[{"type": "text", "text": "open sesame abc"}])
    text = text_of(arguments, reason="it says 'open sesame'", view=view, redact=RedactKeys())
    assert "sesame" not in text
    assert "Log in as ada with ****" in text
    assert "reason     it says '****'" in text
    assert "**** abc" in text  # too short: it may stand there by chance


@pytest.mark.parametrize("sneaky", SNEAKY, ids=ascii)
def test_nothing_in_it_steers_the_terminal(sneaky: str) -> None:
    """Unseen characters are written out."""
    text = text_of({f"k{sneaky}": f"v{sneaky}"}, name=f"sh{sneaky}", reason=f"r{sneaky}x")
    unseen = sneaky.replace("\t", "")
    assert unseen not in text
    text.encode()


def test_nothing_in_it_passes_for_a_line_of_its_own() -> None:
    """A line break in a reason or in an argument is none."""
    forged = "fine\ntool       harmless"
    text = text_of({"a": forged}, reason=forged, name=f"sh {forged}", view=GenericCall(forged))
    assert sum(line.startswith("tool ") for line in text.splitlines()) == 1


def test_a_long_text_shows_its_beginning_and_its_end() -> None:
    """So that nothing hides behind a long argument."""
    command = "echo " + "x" * 5000 + "; rm -rf /"
    text = text_of({"command": command})
    assert '"echo xxx' in text
    assert '; rm -rf /"' in text
    assert "characters]" in text
    assert text.endswith("(this is not all)")
    assert len(text) < 1000


def test_many_arguments_are_bounded() -> None:
    text = text_of({f"key{number}": "v" * 100 for number in range(1000)})
    assert len(text) < 6000
    assert text.endswith("(this is not all)")


def test_deep_arguments_are_bounded() -> None:
    """However deep the host lets arguments be."""
    value: Any = "bottom"
    for _ in range(500):
        value = [value]
    assert text_of({"deep": value}).endswith("(this is not all)")


def test_the_whole_can_be_had() -> None:
    command = "echo " + "x" * 5000 + "; rm -rf /"
    text = text_of({"command": command}, whole=True)
    assert command in text
    assert "not all" not in text


def test_long_names_that_differ_in_the_middle_stay_two() -> None:
    """Neither argument hides the other."""
    names = ["k" * 1000 + letter + "k" * 1000 for letter in "ab"]
    text = text_of(dict.fromkeys(names, "value"), whole=True)
    assert all(name in text for name in names)


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        (TerminalCall("ls -l", description="List", cwd="/tmp"), ["ls -l", "List", "in /tmp"]),
        (GenericCall("Read", locations=(FileLocation("a.py", 3), FileLocation("b"))), ["Read", "a.py:3", "b"]),
        (DiffCall("Edit", (FileDiff("a", "1\n2\n", "1\n"),)), ["Edit", "- 2"]),
        (GenericCall("sh", raw_input={"other": 1}), ["other: 1"]),
    ],
)
def test_the_calls_own_card_says_what_it_is_about(view: Any, shown: list[str]) -> None:
    """Between reason and arguments, which are shown whatever the card says."""
    text = text_of({"real": True}, view=view)
    about = text[text.index("about") : text.index("arguments")]
    assert all(part in about for part in shown)
    assert '"real": true' in text


@pytest.mark.parametrize("view", [None, GenericCall("sh"), GenericCall("sh", raw_input={"a": 1})])
def test_a_card_that_says_no_more_than_the_arguments_is_left_out(view: Any) -> None:
    assert describe_request(request({"a": 1}, view=view)).card is None


def test_a_card_that_is_cut_is_not_all() -> None:
    """The whole of it can be had."""
    view = DiffCall("Edit", (FileDiff("a", None, "line\n" * 500 + "LAST\n"),))
    assert text_of({}, view=view).endswith("(this is not all)")
    whole = text_of({}, view=view, whole=True)
    assert "LAST" in whole
    assert "not all" not in whole
