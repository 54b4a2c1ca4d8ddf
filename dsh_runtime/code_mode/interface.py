"""What a code runtime and the tool ``run_code`` know of each other.

A runtime runs one program at a time in a place of its own and knows nothing of tools; a bridge takes the program's
sub-calls to the pipeline and knows nothing of processes. Neither raises for what a program did.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeAlias

from attrs import frozen
from dsh_hookspecs import AbortSignal, JsonValue

#: How a program can fail.
FailureKind: TypeAlias = Literal["exception", "timeout", "aborted", "memory", "output-limit", "crashed"]


def _no_time() -> float:
    return 0.0


@frozen
class SubError:
    """Why a sub-call failed: what ``ToolCallError`` says in the program."""

    message: str
    name: str | None = None
    code: str | None = None


@frozen
class SubReply:
    """What became of a sub-call: its value, or an error."""

    value: JsonValue = None
    error: SubError | None = None


class Bridge(Protocol):
    """How the sub-calls of one program reach the pipeline."""

    def enter(self, name: str, arguments: JsonValue) -> Callable[[], Awaitable[SubReply]]:
        """Take a sub-call in; called in the order in which the program made them.

        ``arguments`` are frozen, lossless JSON. What is returned is awaited once, in a task of the runtime's own, and
        never raises for what a tool did. That task is cancelled (trio's way) when the program gives up on the call, as
        ``asyncio.timeout`` does, and when the run itself is; the answer is then of no interest any more.
        """
        ...

    def close(self) -> None:
        """The program has ended, however: abort what is in flight, refuse what comes.

        The runtime then waits for what it awaits to come to rest before it reports the run's end.
        """


@frozen(eq=False)
class CodeProgram:
    """What is to be run: the body of an async function, and what it may reach.

    ``people_time`` gives the seconds that people have taken so far to answer what sub-calls asked them, those who have
    not answered yet included: they do not count as the program's.
    """

    code: str
    signal: AbortSignal
    bridge: Bridge
    people_time: Callable[[], float] = _no_time


@frozen
class CodeFailure:
    """Why a program failed. ``traceback`` holds the program's own lines alone, numbered as it is written."""

    kind: FailureKind
    message: str
    traceback: str = ""


@frozen
class CodeOutcome:
    """What came of a program: what it printed, what it returned, and why it failed if it did."""

    logs: str = ""
    result: JsonValue = None
    has_result: bool = False
    failure: CodeFailure | None = None


class CodeRuntime(Protocol):
    """The service ``code_runtime``."""

    language: str

    async def run(self, program: CodeProgram) -> CodeOutcome:
        """Run a program to its end, until nothing of it is left; raises nothing for what it did.

        It is called in a shielded scope: what stops it is the program's signal, and the runtime's own limits.

        A runtime that cannot run anything at all (no sandbox where one is asked for, say) raises a ``HarnessError``
        with a code of its own.
        """
        ...
