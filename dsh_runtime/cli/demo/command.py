"""The command: run the tour in a folder that is gone afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dsh_runtime.cli.errors import FAILED, SUCCESS
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from pathlib import Path

    from dsh_runtime.cli.demo.show import Narrator
    from dsh_runtime.cli.demo.steps import Step
    from dsh_runtime.cli.demo.watch import Seen
    from dsh_runtime.cli.record.story import Told
    from dsh_runtime.cli.running import Interruption
    from dsh_runtime.loader.host import Host


@click.command(
    "demo",
    short_help="Take a tour: six calls, and what each stage decides.",
    epilog=examples("dsh-run demo", "dsh-run demo --output json"),
)
@common_options
@pass_options
def command(options: Options) -> int:
    """Make six calls on a host of their own and show, as it happens, what each stage decides.

    One is allowed, one denied, one would need a person to allow it and there is none, one fails, one takes too long.
    And one asks you, if you take the tour at a terminal; elsewhere it is refused, since nobody is there. At the end the
    record tells the story of one of them again. The config, files, a plugin and the log stand in a temporary folder,
    which is removed at the end. Your own config is not read.
    """
    import tempfile
    from pathlib import Path

    from dsh_runtime.cli.demo.folder import check_wheels
    from dsh_runtime.cli.demo.show import Narrator
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import run

    check_wheels()
    narrator = Narrator(Output(options.output))
    with tempfile.TemporaryDirectory(prefix="dsh-demo-") as folder:
        return run(lambda interruption: _tour(interruption, narrator, Path(folder), options.verbosity))


async def _tour(interruption: Interruption, narrator: Narrator, folder: Path, verbosity: int) -> int:
    from dsh_runtime.cli.demo.folder import write_folder
    from dsh_runtime.cli.demo.steps import STEPS
    from dsh_runtime.cli.demo.watch import Watcher
    from dsh_runtime.cli.session import open_session

    options = Options()
    options.config, options.verbosity = str(write_folder(folder)), verbosity
    trace: list[Seen] = []

    def report(seen: Seen) -> None:
        trace.append(seen)
        narrator.seen(seen)

    calls = []
    async with open_session(options, plugins=(Watcher(report),), record=True) as host:
        narrator.begin(options.config, [row.id for row in host.config.rows])
        for number, step in enumerate(STEPS, start=1):
            calls.append(await _take(interruption, narrator, host, number, step, trace))
    told = _look_up(folder)
    narrator.explain(told)
    broken = sum(not call["as_promised"] for call in calls)
    narrator.end(broken)
    narrator.document({"ok": not broken, "calls": calls, "explained": told.document()})
    return FAILED if broken else SUCCESS


def _look_up(folder: Path) -> Told:
    """The story of the denied call, or else of the last, from the log."""
    from dsh_runtime.cli.demo.folder import LOG
    from dsh_runtime.cli.record.source import reading
    from dsh_runtime.cli.record.story import tell
    from dsh_runtime.services.sessions.reading import CallFilter

    with reading(folder / LOG) as reader:
        found = reader.calls(CallFilter(code="DENIED")) or reader.calls()
        return tell(reader, reader.find_call(found[0].call_id))


async def _take(
    interruption: Interruption, narrator: Narrator, host: Host, number: int, step: Step, trace: list[Seen]
) -> dict[str, Any]:
    """Make the call of one step, compare it with its promise, and give back what a program is told of it."""
    import trio

    from dsh_runtime.cli.results import result_document
    from dsh_runtime.cli.session import call_tool

    narrator.step(number, step)
    if step.asks:
        await _have_somebody_asked(narrator, host)
    trace.clear()
    result = await call_tool(host, step.tool, step.arguments, interruption)
    await trio.lowlevel.checkpoint()  # where an interrupted tour ends
    stages = tuple((seen.stage, seen.outcome) for seen in trace)
    ending = next((ending for ending in step.endings if ending.stages == stages), None)
    narrator.moral(step, ending)
    return {
        "title": step.title,
        "tool": step.tool,
        "arguments": dict(step.arguments),
        "stages": [seen.document() for seen in trace],
        "result": result_document(result),
        "as_promised": ending is not None,
    }


async def _have_somebody_asked(narrator: Narrator, host: Host) -> None:
    """From now on ask whoever takes the tour, if they can be asked."""
    from dsh_runtime.cli.asking import ask_at_terminal
    from dsh_runtime.cli.demo.folder import PATIENCE

    await ask_at_terminal(host)
    narrator.asking(PATIENCE if host.ctx.approval.has_channel() else None)
