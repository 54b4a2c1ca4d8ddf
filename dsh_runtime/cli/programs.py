"""``dsh-run exec``: run a program that calls the tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from dsh_runtime.cli.errors import CliError
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import Interruption
    from dsh_runtime.loader.model import HostConfig

_MOST: Final = 8 * 1024 * 1024
_CHUNK: Final = 1 << 20
_STDIN: Final = "-"


@click.command(
    "exec",
    short_help="Run a program that calls the tools.",
    epilog=examples(
        "dsh-run exec report.py",
        "dsh-run exec --sdk > tools.pyi",
        'echo \'return await tools.greet({"name": "Ada"})\' | dsh-run exec -',
        "dsh-run exec report.py --output json",
    ),
)
@click.argument("file", metavar="FILE", required=False)
@click.option("--sdk", is_flag=True, help="Run nothing; show what a program finds under 'tools', as declarations.")
@common_options
@pass_options
def command(options: Options, file: str | None, sdk: bool) -> int:
    """Run the Python program in FILE (- reads it from stdin) against the tools of the config, as a model's would be.

    The program is the body of an async function: it calls 'await tools.name({...})', prints, and returns a JSON value.
    It runs confined, and each of its calls goes through every policy that the config names and is on record; 'dsh-run
    explain' shows the tree of them. [host.code] in the config sets the limits.

    A program that fails, or may not run, ends with exit code 1 and one line on stderr.
    """
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import run

    if (file is None) == (not sdk):
        raise CliError("exec takes the file of one program, - for stdin, or --sdk")
    output = Output(options.output)
    if file is None:
        return run(lambda interruption: _declarations(options, output))
    code, title = _program(file)
    return run(lambda interruption: _execute(interruption, options, output, code, title))


async def _execute(interruption: Interruption, options: Options, output: Output, code: str, title: str) -> int:
    from dsh_runtime.cli.asking import ask_at_terminal
    from dsh_runtime.cli.call import call_and_show
    from dsh_runtime.cli.session import open_session

    async with open_session(options, record=True, adapt=_with_programs) as host:
        await ask_at_terminal(host)
        return await call_and_show(interruption, output, host, "run_code", {"code": code, "description": title})


async def _declarations(options: Options, output: Output) -> int:
    from dsh_runtime.cli.errors import SUCCESS
    from dsh_runtime.cli.session import open_session

    async with open_session(options, adapt=_with_programs) as host:
        text = host.ctx.get("code_mode").sdk()
    output.document({"sdk": text}) if output.is_json else output.text(text.rstrip())
    return SUCCESS


def _with_programs(config: HostConfig) -> HostConfig:
    from dsh_runtime.loader.code_mode import for_program

    if not config.host.code.enabled:
        raise CliError("this config runs no programs: [host.code] enabled = false; leave it out, or use 'dsh-run call'")
    return for_program(config)


def _program(file: str) -> tuple[str, str]:
    """A program's text, and what it is called."""
    name = "stdin" if file == _STDIN else repr(file)
    try:
        data = _some_of(_stdin()) if file == _STDIN else _read(Path(file))
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise CliError(f"the program in {name} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise CliError(f"the program in {name} is no text in UTF-8 (byte {error.start}); save it as UTF-8") from None
    if len(data) > _MOST:
        raise CliError(f"the program in {name} is too long; at most {_MOST:,} bytes are read")
    return text, f"dsh-run exec {file}"


def _read(path: Path) -> bytes:
    with path.open("rb") as stream:
        return _some_of(stream)


def _some_of(stream: BinaryIO) -> bytes:
    """All that a stream has, or enough to see that it is too much."""
    data = b""
    while len(data) <= _MOST and (more := stream.read(_CHUNK)):
        data += more
    return data


def _stdin() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed:
        raise CliError("the program in stdin cannot be read (stdin is closed)")
    return sys.stdin.buffer
