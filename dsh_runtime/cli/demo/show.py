"""The tour as people see it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dsh_runtime.cli.demo.steps import Ending, Step
from dsh_runtime.cli.demo.watch import Seen
from dsh_runtime.cli.output import Output
from dsh_runtime.cli.text import one_line

if TYPE_CHECKING:
    from dsh_runtime.cli.record.story import Told

_STAGE_WIDTH: Final = 14
_GOOD: Final = ("allow", "allowed-once", "success", "accept")
_UNDECIDED: Final = ("ask", "unavailable", "expired", "accept, changed")


class Narrator:
    """Writes the tour line by line; a program gets it as one document at the end."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._silent = output.is_json
        self._told: list[str] = []

    def begin(self, config: str, plugins: list[str]) -> None:
        """Say what the tour runs on."""
        self._line(("One pipeline, six calls", "bold"))
        self._line("Config ", (config, "cyan"), "; plugins ", (", ".join(plugins), "cyan"))

    def step(self, number: int, step: Step) -> None:
        """Announce a call."""
        self._told.clear()
        self._line("")
        self._line((f"{number}  {step.title}", "bold"))
        self._line("   ", (f"{step.tool}({_shown(step.arguments)})", "cyan"))

    def asking(self, seconds: int | None) -> None:
        """Say who is asked now, with so many seconds to answer, or that nobody is."""
        if seconds is None:
            self._line("   There is no terminal to ask anybody at.")
        else:
            self._line(
                "   ", ("approval-terminal", "cyan"), f" is loaded now and asks you; you have {seconds} seconds."
            )

    def seen(self, seen: Seen) -> None:
        """Tell what a stage did."""
        detail = self._news_in(one_line(seen.detail))
        by = f" by plugin '{seen.plugin}'" if seen.plugin else ""
        more = f"  {detail}" if detail else ""
        if not self._silent:
            self._output.hanging(
                ("   ", (seen.stage.ljust(_STAGE_WIDTH), "dim")), ((seen.outcome, _style(seen.outcome)), by, more)
            )

    def _news_in(self, detail: str) -> str:
        """What of a detail the call's earlier lines have not told."""
        for told in self._told:
            detail = detail.replace(f" ({told})", "")
        news = "" if detail in self._told else detail
        self._told.append(detail)
        return news

    def moral(self, step: Step, ending: Ending | None) -> None:
        """Close a call: what its ending shows, or that it went otherwise than promised."""
        if ending is not None:
            self._line("   ", (ending.moral, "italic"))
            return
        promises = [", ".join(f"{stage} {word}" for stage, word in ending.stages) for ending in step.endings]
        self._line("   ", ("Not as promised, which was: ", "bold red"), "; or ".join(promises))

    def explain(self, told: Told) -> None:
        """Tell the story of a call from the record."""
        if self._silent:
            return
        from dsh_runtime.cli.record.telling import Teller

        self._line("")
        self._line(("What the record says of one of them", "bold"))
        self._line("   ", (f"dsh-run explain {told.info['call_id']}", "cyan"))
        Teller(self._output, indent="   ").story(told)

    def end(self, broken: int) -> None:
        """Close the tour."""
        self._line("")
        if broken:
            self._line((f"{broken} of the calls went otherwise than promised.", "bold red"))
        else:
            self._line(("Every call had one result, and no body ran that policy had not allowed.", "bold green"))
        self._line("Next: write a dsh.toml, then ", ("dsh-run check", "cyan"), " and ", ("dsh-run tools", "cyan"), ".")

    def document(self, document: dict[str, Any]) -> None:
        """The whole tour for a program."""
        if self._silent:
            self._output.document(document)

    def _line(self, *parts: Any) -> None:
        if not self._silent:
            self._output.line(*parts)


def _shown(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={json.dumps(value)}" for key, value in arguments.items())


def _style(outcome: str) -> str:
    if outcome in _GOOD:
        return "green"
    return "yellow" if outcome in _UNDECIDED else "red"
