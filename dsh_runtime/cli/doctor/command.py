"""``dsh-run doctor``: look at everything, and say what to do about each thing that is wrong."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from dsh_runtime.cli.errors import complain
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from dsh_runtime.cli.doctor.report import Report
    from dsh_runtime.cli.output import Output

_PATIENCE: Final = 2.0
"""How long the hosts may take to close, once everything is told, in seconds."""


@click.command(
    "doctor",
    short_help="Say what is wrong with each plugin, and what to do.",
    epilog=examples("dsh-run doctor", "dsh-run -c ./staging.toml doctor", "dsh-run doctor --output json"),
)
@common_options
@pass_options
def command(options: Options) -> int:
    """Name every plugin that is not active and why, with the remedy, and those that could not be unloaded cleanly.

    Unlike check, which says whether the host would start and stops at what prevents it, this also looks at optional
    and disabled plugins, at installed wheels, at what is hidden or never asked, and loads each plugin a second time, to
    see whether it can be unloaded and loaded again. No call is made.

    Ends with exit code 0 if all is well, with 1 if something was found, with 2 if the config cannot be used.
    """
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import run

    output = Output(options.output)
    return run(lambda interruption: _doctor(options, output))


async def _doctor(options: Options, output: Output) -> int:
    from dsh_runtime.cli.doctor.report import Report
    from dsh_runtime.cli.logs import logging_to_stderr
    from dsh_runtime.cli.session import read_config
    from dsh_runtime.loader.doctor.unloading import examined_unloading
    from dsh_runtime.loader.leftovers import threads

    earlier = threads()
    with logging_to_stderr(options.verbosity), contextlib.redirect_stdout(sys.stderr):
        report = Report(read_config(options))
        await _start(report)
        if not report.may_start_again:
            report.show(output)
            return report.exit_code
        with contextlib.ExitStack() as stack:
            async with examined_unloading(report.config, earlier) as unloading:
                report.add(unloading)
                report.show(output)
                stack.enter_context(_leaving(report.exit_code, unloading.folder))
    return report.exit_code


async def _start(report: Report) -> None:
    """Start the host as far as it goes, and see what is wrong with it."""
    from dsh_runtime.loader.errors import LoaderError
    from dsh_runtime.loader.host import open_host

    try:
        async with open_host(report.config, strict=False) as host:
            report.look_at(host)
    except LoaderError as error:
        report.start_failed(error)


@contextlib.contextmanager
def _leaving(code: int, folder: str) -> Iterator[None]:
    """Leave the process if the host does not close: what a plugin does not end was told already."""

    def leave() -> None:
        complain("a plugin does not let the host close; leaving it behind")
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(code)

    timer = threading.Timer(_PATIENCE, leave)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
