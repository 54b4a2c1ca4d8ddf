"""The entry point: run the command line, and turn how it ended into an exit code.

A mistake of the user's is told in one line; a bug keeps its traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Final

_SIGPIPE_EXIT: Final = 141
"""What a shell reports for a program whose reader has left."""


def main(args: Sequence[str] | None = None) -> int:
    """Run ``dsh-run`` with ``args`` (the process's own by default) and give back the exit code."""
    try:
        from dsh_runtime.cli.app import run

        code = run(list(sys.argv[1:] if args is None else args))
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        from dsh_runtime.cli.errors import INTERRUPTED

        return INTERRUPTED
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        _let_go_of_stdout()
        return _SIGPIPE_EXIT if error.errno == errno.EPIPE else _tell_disk_full()
    return code


def _tell_disk_full() -> int:
    from dsh_runtime.cli.errors import FAILED, complain

    complain("no space is left where the output goes; free some, or redirect it")
    return FAILED


def _let_go_of_stdout() -> None:
    """What is left in the buffer goes nowhere, instead of failing when the interpreter ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
