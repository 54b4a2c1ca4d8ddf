"""A host in which somebody works, from its start to its end."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from dsh_runtime.cli.dev.adding import dev_config, find_file
from dsh_runtime.cli.dev.board import Board
from dsh_runtime.cli.dev.calls import Outcome, RepeatedCalls, WantedCall
from dsh_runtime.cli.dev.plain import JsonView, PlainView, View
from dsh_runtime.cli.logs import StderrLog, logging_to_stderr
from dsh_runtime.cli.session import telling_problems
from dsh_runtime.loader.autoreload import refresh_soon
from dsh_runtime.loader.autoreload.task import AutoReload
from dsh_runtime.loader.host import Host, open_host
from dsh_runtime.loader.ownership import roots_of
from dsh_runtime.loader.reload.graph import is_installed

if TYPE_CHECKING:
    from dsh_runtime.cli.dev.target import DevTarget
    from dsh_runtime.cli.options import Options
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import Interruption
    from dsh_runtime.loader.reload.report import ReloadReport


async def work(
    interruption: Interruption, options: Options, output: Output, target: DevTarget | None, calls: list[WantedCall]
) -> None:
    """Run a host until it is interrupted, and show what happens."""
    if target is not None:
        sys.path[:0] = [str(root) for root in target.roots if str(root) not in sys.path]
    with logging_to_stderr(options.verbosity) as log, contextlib.redirect_stdout(sys.stderr), telling_problems():
        log.addFilter(_is_not_shown)
        file = find_file(options.config, target)
        async with open_host(dev_config(file, target), strict=False, watchdog=True) as host:
            # The same file as at the start, also when it is gone: without it, policy would be.
            host.reload.read_config = lambda: dev_config(Path(host.file_now(str(file))) if file else None, target)
            await _Work(interruption, output, host, target, calls, log).run()


class _Work:
    def __init__(
        self,
        interruption: Interruption,
        output: Output,
        host: Host,
        target: DevTarget | None,
        calls: list[WantedCall],
        log: StderrLog,
    ) -> None:
        self._interruption = interruption
        self._host = host
        self._target = target
        self._log = log
        self._board = Board(host, _worked_on(host, target))
        self._view = _view(output, self._board)
        self._calls = RepeatedCalls(host, calls, interruption, self._called)

    async def run(self) -> None:
        auto = AutoReload(self._host, more=self._more, tell=self._reloaded, tell_missing=self._missing)
        self._interruption.on_hangup = lambda: refresh_soon(self._host)
        with self._view:
            self._log.forget_held()
            self._view.show(self._board.begin())
            self._view.show([line for text in self._notes() for line in self._board.note(text)])
            self._calls.again()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._calls.run)
                await auto.run()

    def _reloaded(self, report: ReloadReport) -> None:
        self._view.show(self._board.reloaded(report))
        self._calls.again()

    def _called(self, outcome: Outcome) -> None:
        self._view.result(outcome, self._board.called(outcome))

    def _missing(self, gone: frozenset[Path], back: frozenset[Path]) -> None:
        for folder in sorted(gone):
            text = f"folder {folder} is gone: what is loaded stays, and is reloaded when the folder is back"
            self._view.show(self._board.note(text, "error"))
        for folder in sorted(back):
            self._view.show(self._board.note(f"folder {folder} is back"))

    def _more(self) -> frozenset[Path]:
        return self._target.watched() if self._target is not None else frozenset()

    def _notes(self) -> Iterable[str]:
        yield from self._target.notes if self._target is not None else ()
        for plugin in self._host.plugins:
            roots = roots_of(plugin.fiber.spec.source) if plugin.fiber is not None else ()
            if plugin.id in self._board.worked_on and any(map(is_installed, roots)):
                yield f"{plugin.id} is installed as a copy; to work on it, install it in editable form (pip install -e)"
        files = self._host.config.sources
        yield f"watching {', '.join([*([self._target.label] if self._target else []), *files])}; Ctrl-C ends"


def _worked_on(host: Host, target: DevTarget | None) -> frozenset[str]:
    uses = set(target.uses.values()) if target is not None else set()
    return frozenset(row.id for row in host.config.rows if row.use in uses)


def _view(output: Output, board: Board) -> View:
    if output.look == "rich":
        from dsh_runtime.cli.dev.live import LiveView

        return LiveView(output, board)
    return JsonView(output, board) if output.is_json else PlainView(output, board)


def _is_not_shown(record: logging.LogRecord) -> bool:
    """What the board shows need not be told twice."""
    return not getattr(record, "dsh_reload", False) and getattr(record, "dsh_failed", None) is None
