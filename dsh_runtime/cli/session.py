"""A host for the time of one command, and calls made on it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import trio
from dsh_hookspecs import ToolExecutionResult

from dsh_runtime.cli.errors import CliError
from dsh_runtime.cli.logs import logging_to_stderr
from dsh_runtime.cli.options import Options
from dsh_runtime.cli.running import Interruption
from dsh_runtime.loader.errors import LoaderError
from dsh_runtime.loader.host import Host, open_host
from dsh_runtime.tools.definition import ToolExecutionInput

if TYPE_CHECKING:
    from dsh_runtime.loader.model import HostConfig


@contextlib.asynccontextmanager
async def open_session(options: Options, *, plugins: tuple[Any, ...] = (), strict: bool = True) -> AsyncIterator[Host]:
    """Open the host that the config describes.

    What plugins print goes to stderr meanwhile: stdout is the command's own.
    """
    with logging_to_stderr(options.verbosity) as log, contextlib.redirect_stdout(sys.stderr), telling_problems():
        async with open_host(read_config(options), plugins=plugins, strict=strict) as host:
            log.tell_held() if strict else log.forget_held()
            yield host


def read_config(options: Options) -> HostConfig:
    """Find, read and check the config; no plugin is imported."""
    from dsh_runtime.loader.find import find_config
    from dsh_runtime.loader.load import load_config

    with telling_problems():
        return load_config(find_config(options.config))


@contextlib.contextmanager
def telling_problems() -> Iterator[None]:
    """Turn what is wrong with the config or a plugin into one line for each problem."""
    try:
        yield
    except LoaderError as error:
        raise CliError(*str(error).splitlines()) from error


async def call_tool(host: Host, name: str, arguments: Any, interruption: Interruption) -> ToolExecutionResult:
    """Make one call for an agent of its own; an interruption reaches it by its signal alone."""
    agent = host.ctx.scope()
    try:
        with trio.CancelScope(shield=True):
            result: ToolExecutionResult = await host.ctx.tools.execute(
                ToolExecutionInput(f"cli-{os.urandom(6).hex()}", name, arguments, interruption.signal, agent=agent.key)
            )
    finally:
        with trio.CancelScope(shield=True):
            await agent.dispose()
    return result
