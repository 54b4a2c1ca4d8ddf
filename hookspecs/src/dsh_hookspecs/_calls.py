"""One call as plugins see it: its identity, the decisions about it, its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, final

from attrs import Factory, field, frozen

from dsh_hookspecs._json import Content, JsonValue
from dsh_hookspecs._signals import AbortSignal
from dsh_hookspecs._views import ToolCallView


@final
class Unset:
    """The type of :data:`UNSET`, the default of a member whose ``None`` would be a value."""

    __slots__ = ()

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()


@final
class ExecutionToken:
    """The identity of one call: minted by the host, opaque, compared and nothing else."""

    __slots__ = ("__weakref__",)


class ToolExecution(Protocol):
    """One call, frozen from the start.

    ``arguments`` are frozen lossless JSON. ``digest`` is the SHA-256, in hex, of the name and the arguments: the same
    in approval, log and audit. ``agent`` is the scope key on whose behalf the call runs, ``parent`` the token of the
    call it is nested in, ``root_call_id`` the id of the outermost one. ``dry_run`` is true where policy is asked what
    it would say about a call that is not going to run.
    """

    @property
    def call_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> JsonValue: ...
    @property
    def signal(self) -> AbortSignal: ...
    @property
    def agent(self) -> object | None: ...
    @property
    def parent(self) -> ExecutionToken | None: ...
    @property
    def root_call_id(self) -> str: ...
    @property
    def token(self) -> ExecutionToken: ...
    @property
    def dry_run(self) -> bool: ...
    @property
    def digest(self) -> str: ...


class ToolDispatchExecution(ToolExecution, Protocol):
    """A wrapper's own view of the call: ``signal``, and nothing else, can be assigned.

    What lies behind the wrapper's ``next()`` sees the assigned signal, what lies before does not.
    """

    @property
    def signal(self) -> AbortSignal: ...
    @signal.setter
    def signal(self, signal: AbortSignal) -> None: ...
    @property
    def definition(self) -> Any:
        """The visible tool definition that this call is pinned to, ``None`` for an unknown tool."""


class ToolRunContext(ToolExecution, Protocol):
    """What a tool's body gets beside its arguments."""

    def defer_context(self, message: ContextMessage) -> None:
        """Attach a context message to this call's own result; kept when the body raises or is aborted."""

    def conclude_turn(self) -> None:
        """Mark a success as the turn's last."""

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the observers of ``tools/progress`` how far the work has come."""


@frozen
class ContextMessage:
    """A message for the model's next turn: content, who it comes from, and meta of its own."""

    content: Content
    source: str
    meta: JsonValue = None


@frozen
class Allow:
    """No objection."""


@frozen
class Deny:
    """The call does not run; ``reason`` is a sentence for the model and its people."""

    reason: str


@frozen
class Ask:
    """A person decides; ``reason`` says why they are asked."""

    reason: str | None = None


PreToolDecision: TypeAlias = Allow | Deny | Ask


@frozen
class Accept:
    """The result stands, perhaps with its ``content`` or its ``value`` replaced (never both).

    ``deferred_contexts`` take the place of those that the tool deferred, ``error_message`` that of a failure's message;
    both go together with either. ``additional_contexts`` come behind.
    """

    content: Content | None = None
    value: JsonValue | Unset = UNSET
    additional_contexts: Sequence[ContextMessage] = ()
    deferred_contexts: Sequence[ContextMessage] | None = field(default=None, kw_only=True)
    error_message: str | None = field(default=None, kw_only=True)


@frozen
class Block:
    """The result is withdrawn: the model gets ``feedback`` (a text or content blocks) as an error instead."""

    feedback: str | Content
    additional_contexts: Sequence[ContextMessage] = ()


PostToolDecision: TypeAlias = Accept | Block


@frozen
class ToolErrorInfo:
    """Where a failure comes from: error class, stable code, and the plugin whose code decided."""

    name: str
    code: str | None = None
    plugin: str | None = None


@frozen
class ToolFailure:
    """What went wrong, without the ``Error: `` that the model sees in front of it."""

    message: str
    info: ToolErrorInfo | None = None


# Without a slot for weak references a host can fill the slots of an open twin and change its class.
@frozen(weakref_slot=False)
class ToolExecutionSuccess:
    """A call that gave a value: the canonical ``value`` for programs, ``content`` for the model, ``meta`` for a UI."""

    if TYPE_CHECKING:
        is_error: Literal[False] = field(init=False)  # a member, so that checkers narrow on it
    else:
        is_error = False
    value: JsonValue
    content: Content
    meta: JsonValue = None
    additional_contexts: Sequence[ContextMessage] = ()
    concludes_turn: bool = False


def _error_text(failure: ToolExecutionFailure) -> Content:
    return [{"type": "text", "text": f"Error: {failure.error.message}"}]


@frozen
class ToolExecutionFailure:
    """A call that gave no value; without ``content`` the model reads ``Error: <message>``."""

    if TYPE_CHECKING:
        is_error: Literal[True] = field(init=False)
    else:
        is_error = True
    error: ToolFailure
    content: Content = field(default=Factory(_error_text, takes_self=True))
    meta: JsonValue = None
    additional_contexts: Sequence[ContextMessage] = ()


ToolExecutionResult: TypeAlias = ToolExecutionSuccess | ToolExecutionFailure


@frozen
class ToolProgress:
    """How far a body has come: ``done`` of ``total`` (``None`` while unknown), and what it is at."""

    done: float
    total: float | None = None
    message: str | None = None


@frozen
class CodeDispatchLog:
    """A sub-call of a Code Mode program that is about to be logged; ``exec`` is the outer execution."""

    exec: ToolExecution
    agent: object | None
    sub_call_id: str
    name: str
    is_error: bool
    content: Content


ApprovalOutcome: TypeAlias = Literal["allowed-once", "rejected", "expired", "cancelled", "unavailable"]


@frozen
class ApprovalRequest:
    """A person is asked about one call. The answer is bound to ``digest``; ``deadline`` is in seconds from now."""

    exec: ToolExecution
    reason: str | None = None
    view: ToolCallView | None = None
    digest: str = field(default="", kw_only=True)
    deadline: float | None = field(default=None, kw_only=True)
