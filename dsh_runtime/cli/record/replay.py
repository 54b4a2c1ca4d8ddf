"""``dsh-run replay``: the cards of a call again, from the log alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from dsh_runtime.cli.errors import SUCCESS
from dsh_runtime.cli.options import Options, common_options, examples, pass_options
from dsh_runtime.cli.record.source import find_log, log_option, reading

if TYPE_CHECKING:
    from dsh_runtime.cards import Card
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.record.story import Told

_LINES: Final = 400
_COLUMNS: Final = 2_000
_BYTES: Final = 128 * 1024


@click.command(
    "replay",
    short_help="Show the cards of a call again.",
    epilog=examples("dsh-run replay cli-569959ae2db2", "dsh-run replay cli-56 --output json"),
)
@click.argument("call")
@log_option
@common_options
@pass_options
def command(options: Options, call: str, file: str | None) -> int:
    """Show the cards of a call and its result as they were shown then, from the log alone: no plugin is loaded.

    CALL is the id of a call on record, or a beginning of it that no other has. As JSON, the views are given.
    """
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.record.story import tell

    with reading(find_log(options, file)) as reader:
        told = tell(reader, reader.find_call(call))
    show_replay(Output(options.output), told)
    return SUCCESS


def show_replay(output: Output, told: Told) -> None:
    """Show the card of a call and, if it has a result, that of the result."""
    from dsh_runtime.cards import Bounds, call_card, result_card, view_to_json

    pending, completed = _view(told, "pending"), _view(told, "completed")
    if output.is_json:
        views = {"pending": view_to_json(pending), "completed": completed and view_to_json(completed)}
        output.document({**told.info, "is_error": _failed(told), **views})
        return
    bounds = Bounds(lines=_LINES, columns=_COLUMNS, bytes=_BYTES)
    _show(output, call_card(pending, bounds=bounds))
    if completed is not None:
        _show(output, result_card(completed, pending=pending, is_error=_failed(told), bounds=bounds))


def _show(output: Output, card: Card) -> None:
    from dsh_runtime.cards import drawing, to_text

    if output.look == "rich":
        output.show(drawing(card))
    else:
        output.text(to_text(card))


def _failed(told: Told) -> bool:
    return told.info["outcome"] not in ("success", "open")


def _view(told: Told, state: str) -> Any:
    """The view that is on record, else the generic one that follows from the record."""
    from dsh_runtime.cards import ViewError, view_from_json

    views = (told.result or {}).get("views")
    if isinstance(views, Mapping) and state in views:
        try:
            return view_from_json(views[state])
        except ViewError:
            pass  # It was cut, or a later version wrote it.
    return _generic_call(told) if state == "pending" else _generic_result(told)


def _generic_call(told: Told) -> Any:
    from dsh_hookspecs import GenericCall

    return GenericCall(title=str(told.info["name"]), raw_input=told.call.get("arguments"))


def _generic_result(told: Told) -> Any:
    from dsh_hookspecs import GenericResult

    if told.result is None:
        return None
    content, error = told.result.get("content"), told.result.get("error")
    if content is None and isinstance(error, Mapping):
        content = [{"type": "text", "text": str(error.get("message"))}]
    blocks = content if isinstance(content, list) else []
    return GenericResult(content=[block for block in blocks if isinstance(block, Mapping) and "type" in block])
