"""The story of a call, line by line for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dsh_runtime.cli.output import Output
from dsh_runtime.cli.record.story import Told
from dsh_runtime.cli.record.units import duration, local_time
from dsh_runtime.cli.results import content_text
from dsh_runtime.cli.text import Part, one_line, shortened

_WIDTH: Final = 20
_LONGEST: Final = 500
_GOOD: Final = ("allow", "pass", "success", "accept", "allowed-once", "on record")
_UNDECIDED: Final = ("ask", "accept-content", "accept-value", "accept-contexts", "accept-message", "open", "unanswered")


def shown_arguments(arguments: Any) -> str:
    """Arguments on one line, cut where they get too long."""
    return shortened(one_line(json.dumps(arguments, ensure_ascii=False)), _LONGEST)


class Teller:
    """Tells the story of one call; what has been told once is not told again."""

    def __init__(self, output: Output, indent: str = "") -> None:
        self._output = output
        self._indent = indent
        self._told: list[str] = []

    def story(self, told: Told) -> None:
        """Show a call, its stages in order, and below its body the calls that were made inside it."""
        self._head(told)
        self._steps(told, self._indent)

    def step(self, step: Mapping[str, Any], indent: str | None = None) -> None:
        """Show what one listener, guard, person or body said."""
        facts = [_by(step), duration(_number(step.get("ms")))]
        place = self._indent if indent is None else indent
        self._line(place, str(step.get("stage")), str(step.get("answer")), facts, _text(step, "detail"))

    def _head(self, told: Told) -> None:
        info, call = told.info, told.call
        owner = f" of plugin '{one_line(str(call['plugin']))}'" if call.get("plugin") else ""
        facts = {
            "tool": one_line(str(info["name"])) + owner,
            "inside": _text(call, "parent"),
            "session": str(info["session"]),
            "time": local_time(info["time"]),
            "arguments": shown_arguments(call.get("arguments")),
            "digest": _text(call, "digest"),
        }
        self._output.line(self._indent, (f"call {one_line(info['call_id'])}", "bold"))
        for name, fact in facts.items():
            if fact:
                self._output.hanging((f"{self._indent}  ", (name.ljust(_WIDTH), "dim")), (fact,))

    def _steps(self, told: Told, indent: str) -> None:
        self._line(indent, "entry", "on record", [], "")
        inside = list(told.nested)
        decided = [event for event in told.approvals if event["event"] == "approval/decided"]
        for step in told.steps:
            self.step(_with_channel(step, decided), indent)
            if step.get("stage") == "body":
                self._nested(inside, indent)
        self._nested(inside, indent)
        if told.result is None:
            self._open(told, indent)
        else:
            self._result(told, told.result, indent)

    def _nested(self, inside: list[Told], indent: str) -> None:
        """Show calls inside a call, once."""
        while inside:
            inner = inside.pop(0)
            head = f"{one_line(inner.info['call_id'])}  {one_line(str(inner.info['name']))}"
            arguments = shown_arguments(inner.call.get("arguments"))
            self._output.hanging((f"{indent}  ", ("call ", "dim")), (head, f"  {arguments}"))
            self._steps(inner, indent + "    ")

    def _open(self, told: Told, indent: str) -> None:
        asked = [event for event in told.approvals if event["event"] == "approval/asked"]
        answered = len(told.approvals) - len(asked)
        for event in asked[answered:]:
            self._line(indent, "approval", "open", [f"asked {local_time(event['time'])}"], _text(event, "reason"))
        self._line(indent, "result", "open", [], "the call has no result yet")

    def _result(self, told: Told, result: Mapping[str, Any], indent: str) -> None:
        error, content = result.get("error"), result.get("content")
        word, took = str(told.info["code"] or told.info["outcome"]), duration(told.info["ms"])
        if isinstance(error, Mapping):
            by = f"by plugin '{one_line(told.decided_by)}'" if told.decided_by else ""
            self._line(indent, "result", word, [by, took], _text(error, "message"), "red")
        else:
            blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
            self._line(indent, "result", word, [took], one_line(content_text(blocks)), "green")

    def _line(
        self, indent: str, stage: str, answer: str, facts: list[str], detail: str, style: str | None = None
    ) -> None:
        more = [fact for fact in (*facts, shortened(self._news_in(detail), _LONGEST)) if fact and fact != "-"]
        rest: list[Part] = [(answer, style or _style(answer)), *(f"  {text}" for text in more)]
        self._output.hanging((f"{indent}  ", (stage.ljust(_WIDTH), "dim")), rest)

    def _news_in(self, detail: str) -> str:
        """What of a detail has not been told yet."""
        for told in self._told:
            detail = "" if detail == told else detail.replace(f" ({told})", "")
        if detail:
            self._told.append(detail)
        return detail


def _with_channel(step: Mapping[str, Any], decided: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The step of a question to a person, with the plugin that brought the answer."""
    if step.get("stage") != "approval" or not decided:
        return step
    channel = decided.pop(0).get("channel")
    return {**step, "plugin": channel} if channel else step


def _by(step: Mapping[str, Any]) -> str:
    plugin, listener = step.get("plugin"), step.get("listener")
    if not plugin:
        return ""
    place = f" ({one_line(str(listener))})" if listener and step.get("stage") != "body" else ""
    return f"by plugin '{one_line(str(plugin))}'{place}"


def _text(mapping: Mapping[str, Any], name: str) -> str:
    return one_line(str(mapping.get(name) or ""))


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) else None


def _style(answer: str) -> str:
    if answer in _GOOD:
        return "green"
    return "yellow" if answer in _UNDECIDED else "red"
