"""The call as each stage sees it: identity frozen from the start, a view per wrapper, a context for the body.

None of them has a constructor: the ``make_`` functions assign the slots from outside, at half the cost of ``__init__``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NoReturn

from dsh_hookspecs import AbortSignal, ContextMessage, ExecutionToken, JsonValue, ToolProgress

from dsh_runtime.tools.definition import ToolDefinition
from dsh_runtime.values.compact import dump_canonical

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call
    from dsh_runtime.tools.registry import RegisteredTool


def digest_of(name: str, arguments: JsonValue) -> str:
    """The SHA-256, in hex, of a call's name and arguments, independent of the order of keys."""
    return hashlib.sha256(dump_canonical([name, arguments]).encode()).hexdigest()


class _OpenExecution:
    """An execution that can still be filled in; becomes an :class:`Execution` once it is."""

    __slots__ = (
        "_digest",
        "agent",
        "arguments",
        "call_id",
        "dry_run",
        "name",
        "parent",
        "root_call_id",
        "signal",
        "token",
    )

    call_id: str
    name: str
    arguments: JsonValue
    signal: AbortSignal
    agent: Any
    parent: ExecutionToken | None
    root_call_id: str
    token: ExecutionToken
    dry_run: bool
    _digest: str | None


class Execution(_OpenExecution):
    """One call's identity; reading only."""

    __slots__ = ()

    @property
    def digest(self) -> str:
        """The digest of name and arguments, made when first asked for."""
        if self._digest is None:
            object.__setattr__(self, "_digest", digest_of(self.name, self.arguments))
        return self._digest or ""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an execution is frozen: {name} of call {self.call_id!r} cannot be assigned")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an execution is frozen: {name} of call {self.call_id!r} cannot be deleted")

    def __repr__(self) -> str:
        return f"<Execution {self.call_id} of {self.name}>"


def make_execution(
    call_id: str,
    name: str,
    arguments: JsonValue,
    signal: AbortSignal,
    agent: Any,
    parent: ExecutionToken | None,
    root_call_id: str | None,
    token: ExecutionToken,
    dry_run: bool = False,
) -> Execution:
    """Fill in an execution and freeze it. (Assigning, then changing the class, costs a third of frozen attrs.)"""
    execution: Any = _OpenExecution()
    execution.call_id = call_id
    execution.name = name
    execution.arguments = arguments
    execution.signal = signal
    execution.agent = agent
    execution.parent = parent
    execution.root_call_id = call_id if root_call_id is None else root_call_id
    execution.token = token
    execution.dry_run = dry_run
    execution._digest = None
    execution.__class__ = Execution
    return execution  # type: ignore[no-any-return]


class _View:
    """Reads everything but the signal from the execution behind it."""

    __slots__ = ("_exec",)

    _exec: Execution

    @property
    def call_id(self) -> str:
        return self._exec.call_id

    @property
    def name(self) -> str:
        return self._exec.name

    @property
    def arguments(self) -> JsonValue:
        return self._exec.arguments

    @property
    def agent(self) -> Any:
        return self._exec.agent

    @property
    def parent(self) -> ExecutionToken | None:
        return self._exec.parent

    @property
    def root_call_id(self) -> str:
        return self._exec.root_call_id

    @property
    def token(self) -> ExecutionToken:
        return self._exec.token

    @property
    def dry_run(self) -> bool:
        return self._exec.dry_run

    @property
    def digest(self) -> str:
        return self._exec.digest

    def __repr__(self) -> str:
        return repr(self._exec)


class DispatchView(_View):
    """A wrapper's own view: ``signal``, and nothing else, can be assigned."""

    __slots__ = ("_signal", "_tool")

    _signal: AbortSignal
    _tool: RegisteredTool | None

    @property
    def definition(self) -> ToolDefinition | None:
        """The definition that the call is pinned to, ``None`` for an unknown tool."""
        return self._tool.definition if self._tool is not None else None

    @property
    def signal(self) -> AbortSignal:
        """The signal that what lies behind this wrapper sees."""
        return self._signal

    @signal.setter
    def signal(self, signal: AbortSignal) -> None:
        if not isinstance(signal, AbortSignal):
            raise TypeError(f"exec.signal takes an AbortSignal, not {signal!r}; a call always has one")
        self._signal = signal


class RunContext(_View):
    """What a body gets: the identity, the fused signal, and three things it may do to its own result."""

    __slots__ = ("_call", "_signal", "began", "concluded", "contexts")

    _signal: AbortSignal
    _call: Call
    began: bool
    concluded: bool
    contexts: list[ContextMessage]

    @property
    def signal(self) -> AbortSignal:
        """The signal that stops this body: the caller's, fused with what wrappers have assigned."""
        return self._signal

    def defer_context(self, message: ContextMessage) -> None:
        """Attach a context message to this call's own result."""
        if not isinstance(message, ContextMessage):
            raise TypeError(f"defer_context takes a ContextMessage, not {message!r}")
        self.contexts.append(message)

    def conclude_turn(self) -> None:
        """Mark a success as the turn's last."""
        self.concluded = True

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the observers of ``tools/progress`` how far the work has come; from any thread."""
        for number in (done, total):
            if number is not None and type(number) not in (int, float):
                raise TypeError(f"progress() counts in int or float, not {number!r:.100}")
        if message is not None and type(message) is not str:
            raise TypeError(f"progress() takes a text as message, not {message!r:.100}")
        self._call.progress(ToolProgress(done, total, message))


def make_view(call: Call, signal: AbortSignal) -> DispatchView:
    """The view of the next wrapper."""
    view = DispatchView()
    view._exec = call.exec
    view._signal = signal
    view._tool = call.tool
    return view


def make_run_context(call: Call, signal: AbortSignal) -> RunContext:
    """The context of one run of the body."""
    context = RunContext()
    context._exec = call.exec
    context._signal = signal
    context._call = call
    context.began = context.concluded = False
    context.contexts = []
    return context
