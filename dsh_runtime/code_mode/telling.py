"""What a model is told of a run: decisions alone, nothing here waits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dsh_hookspecs import Content, ContentBlock, JsonValue, ToolFailedError

from dsh_runtime.code_mode.interface import CodeFailure, CodeOutcome
from dsh_runtime.tools.failures import clean


class CodeRunError(ToolFailedError):
    """A program failed; ``kind`` says how."""

    default_code = "CODE_RUN_FAILED"

    def __init__(self, failure: CodeFailure, content: Sequence[ContentBlock]) -> None:
        super().__init__(headline(failure), content=content)
        self.kind = failure.kind


def headline(failure: CodeFailure) -> str:
    """A failure in one line, with its kind."""
    return clean(f"the program failed ({failure.kind}): {failure.message}")


def value_of(outcome: CodeOutcome) -> dict[str, JsonValue]:
    """The canonical value of a run that did not fail."""
    value: dict[str, JsonValue] = {"logs": clean(outcome.logs)}
    return {**value, "result": outcome.result} if outcome.has_result else value


def render(args: object, value: Mapping[str, Any]) -> Content:
    """What was printed, and what was returned."""
    logs = value["logs"].removesuffix("\n")
    blocks = [_text(logs)] if logs else []
    if "result" in value:
        result = value["result"]
        blocks.append(_text(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)))
    return blocks or [_text("The program ended; it printed and returned nothing.")]


def failure_content(outcome: CodeOutcome, failure: CodeFailure) -> list[ContentBlock]:
    """Why a run failed, where, and what it had printed until then."""
    text = f"Error: {headline(failure)}"
    if failure.traceback and failure.traceback.strip() != failure.message.strip():
        text += f"\n\n{failure.traceback.rstrip()}"
    blocks = [_text(text)]
    if outcome.logs:
        blocks.append(_text(f"Printed until then:\n{outcome.logs.removesuffix(chr(10))}"))
    return blocks


def media_note(left_out: int) -> list[ContentBlock]:
    """Says that there was more than is shown."""
    text = f"[{left_out} more images or pieces of audio from the program's calls are left out]"
    return [_text(text)] if left_out else []


def _text(text: str) -> ContentBlock:
    return {"type": "text", "text": clean(text)}
