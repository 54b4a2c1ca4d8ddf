"""``dsh-run doctor``: look at everything, and say what to do about each thing that is wrong."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    import threading

    from dsh_runtime.cli.doctor.report import Report
    from dsh_runtime.cli.output import Output
    from dsh_runtime.loader.host import Host


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
    from dsh_runtime.loader.autoreload import without_reload
    from dsh_runtime.loader.doctor.told import told_threads
    from dsh_runtime.loader.leftovers import outliving, threads

    earlier = threads()
    with logging_to_stderr(options.verbosity), contextlib.redirect_stdout(sys.stderr):
        report = Report(without_reload(read_config(options)), output)
        with told_threads() as owners:
            await _start(report)
        if report.may_start_again:
            await _start_again(report, {thread: owners.get(thread) for thread in await outliving(earlier)})
        report.show()
    return report.exit_code


async def _start(report: Report) -> None:
    """Start the host as far as it goes, and see what is wrong with it."""
    from dsh_runtime.loader.errors import LoaderError
    from dsh_runtime.loader.host import open_host

    with contextlib.ExitStack() as closing:
        try:
            async with open_host(report.config, strict=False, watchdog=True) as host:
                report.look_at(host)
                _watch_closing(closing, report, host, None)
        except LoaderError as error:
            report.start_failed(error)


async def _start_again(report: Report, left: dict[threading.Thread, str | None]) -> None:
    """Start a second host, and see how its plugins unload."""
    from dsh_runtime.loader.doctor.unloading import examined_unloading

    with contextlib.ExitStack() as closing:
        async with examined_unloading(report.config, left) as unloading:
            report.add(unloading)
            _watch_closing(closing, report, unloading.host, unloading.folder)


def _watch_closing(closing: contextlib.ExitStack, report: Report, host: Host, folder: str | None) -> None:
    """Tell what there is, and leave, if the host does not close until the stack is left."""
    from dsh_runtime.cli.doctor.closing import leaving_if_stuck

    def leave(going_on: list[str]) -> None:
        report.stuck(going_on)
        report.show()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(report.exit_code)

    closing.enter_context(leaving_if_stuck(host.ctx.fiber.kernel, leave))
