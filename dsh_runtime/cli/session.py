"""A host for the time of one command, and calls made on it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any

import trio
from dsh_hookspecs import HarnessError, ToolExecutionResult

from dsh_runtime.cli.errors import CliError
from dsh_runtime.cli.logs import OWN_CALLS, logging_to_stderr
from dsh_runtime.cli.options import Options
from dsh_runtime.cli.running import Interruption
from dsh_runtime.loader.autoreload import without_reload
from dsh_runtime.loader.code_mode import for_people
from dsh_runtime.loader.errors import LoaderError
from dsh_runtime.loader.host import Host, open_host
from dsh_runtime.loader.record import without_record
from dsh_runtime.tools.definition import ToolExecutionInput

if TYPE_CHECKING:
    from dsh_runtime.loader.model import HostConfig


@contextlib.asynccontextmanager
async def open_session(
    options: Options,
    *,
    plugins: tuple[Any, ...] = (),
    strict: bool = True,
    record: bool = False,
    tells_failures: bool = False,
    stays: bool = False,
    adapt: Callable[[HostConfig], HostConfig] = for_people,
) -> AsyncIterator[Host]:
    """Open the host that the config describes; with ``record``, for calls, which the session log hears of.

    ``adapt`` makes the config fit whoever calls the tools: a person, where a command does not say otherwise.

    The host of a command that ``stays`` reloads if its config says so, and names plugins that hold everybody up.

    A command that ``tells_failures`` itself names the optional plugins that failed; for others the log does.

    What plugins print goes to stderr meanwhile: stdout is the command's own.
    """
    with logging_to_stderr(options.verbosity) as log, contextlib.redirect_stdout(sys.stderr), telling_problems():
        config = adapt(read_config(options))
        config = config if record else without_record(config)
        config = config if stays else without_reload(config)
        async with open_host(config, plugins=plugins, strict=strict, watchdog=stays) as host:
            log.tell_held(failures=not tells_failures) if strict else log.forget_held()
            yield host


def for_models(config: HostConfig) -> HostConfig:
    """The config as it is, for a host whose tools models call."""
    return config


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
    call_id = f"{OWN_CALLS}{os.urandom(6).hex()}"
    async with _agent(host, f"call {name}") as agent:
        result: ToolExecutionResult = await host.ctx.tools.execute(
            ToolExecutionInput(call_id, name, arguments, interruption.signal, agent=agent)
        )
    return result


@contextlib.asynccontextmanager
async def _agent(host: Host, label: str) -> AsyncIterator[Hashable]:
    """An agent for the body, with a session of its own where there is a log. Nothing here is cancelled half-way."""
    with trio.CancelScope(shield=True):
        agent = host.ctx.scope()
        session = None
        try:
            sessions = host.ctx.get("sessions")
            if sessions is not None:
                session = await sessions.open_session(agent.key, label=label, front_door="cli")
            yield agent.key
        except HarnessError as error:
            raise CliError(str(error)) from error
        finally:
            await agent.dispose()
            if session is not None:
                await session.close()
