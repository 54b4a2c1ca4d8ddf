"""The hook specifications: every event of the runtime, with its mode, arguments, answer and what a failure does.

A listener may take fewer arguments than the spec. A waterfall's listener may be sync or async and gets ``next``:
it answers, or returns what ``next()`` gave, changed or not.
"""

# The bodies are empty and the arguments unused: a specification is its signature and its docstring.

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from dsh_hookspecs._calls import (
    Accept,
    Allow,
    ApprovalOutcome,
    ApprovalRequest,
    Ask,
    Block,
    CodeDispatchLog,
    Deny,
    PostToolDecision,
    PreToolDecision,
    ToolDispatchExecution,
    ToolExecution,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolExecutionSuccess,
    ToolProgress,
)
from dsh_hookspecs._json import Content
from dsh_hookspecs._markers import hookspec
from dsh_hookspecs._protocols import PluginFiber


@hookspec(mode="waterfall", returns=(Allow, Deny, Ask))
def tools_pre_execute(exec: ToolExecution, next: Callable[[], Awaitable[PreToolDecision]]) -> PreToolDecision:
    """Decide whether a call may run: ``Allow()``, ``Deny(reason)`` or ``Ask(reason)``.

    The end of the chain allows. ``Deny`` cuts the chain short. Of ``Allow`` and ``Ask`` without an answer from
    ``next()`` the listeners behind are still heard and the stricter answer stands; a listener that has received an
    answer from ``next()`` answers for what lies behind it. A failure fails the call closed (``LISTENER_FAILED``).
    """
    raise AssertionError("a specification is not called")


@hookspec(mode="waterfall", returns=(ToolExecutionSuccess, ToolExecutionFailure))
def tools_execute(
    exec: ToolDispatchExecution, next: Callable[[], Awaitable[ToolExecutionResult]]
) -> ToolExecutionResult:
    """Wrap the body: timeout, retry, metrics. ``next()`` gives the normalised result and may be called again.

    ``exec.signal`` can be assigned and counts for what lies behind. A result that is not the one ``next()`` gave is
    checked and rendered like a body's own value. A failure fails the call.
    """
    raise AssertionError("a specification is not called")


@hookspec(mode="waterfall", returns=(Accept, Block))
def tools_post_execute(
    exec: ToolExecution, result: ToolExecutionResult, next: Callable[[], Awaitable[PostToolDecision]]
) -> PostToolDecision:
    """Look at a result, success or failure: ``Accept()``, ``Accept(content=…)``, ``Accept(value=…)``, ``Block(…)``.

    ``Accept(deferred_contexts=…)`` and ``Accept(error_message=…)`` replace what else models and programs get to see.
    The end of the chain accepts. Without an answer from ``next()`` the listeners behind are still heard and the
    stronger answer stands (block over value over content over bare accept). A failure fails the call.
    """
    raise AssertionError("a specification is not called")


@hookspec(mode="emit", sync_only=True)
def tools_result(exec: ToolExecution, result: ToolExecutionResult) -> None:
    """Observe the frozen result of a call, exactly once for every call that entered. Failures are contained."""


@hookspec(mode="emit", sync_only=True, scoped=False)
def tools_change() -> None:
    """A tool came or went, or a restriction changed, in whatever scope. Failures are contained."""


@hookspec(mode="emit", sync_only=True)
def tools_progress(exec: ToolExecution, progress: ToolProgress) -> None:
    """A running body says how far it has come. Failures are contained."""


@hookspec(mode="emit", sync_only=True, scoped=False)
def plugin_state(fiber: PluginFiber, previous: str) -> None:
    """A plugin's fiber has gone from ``previous`` to ``fiber.state``. Failures are contained.

    A reload is told once: of the new fiber, with the state of the old one as ``previous``.
    """


@hookspec(mode="waterfall", returns=(list, tuple))
def tools_code_dispatch_log(dispatch: CodeDispatchLog, next: Callable[[], Awaitable[Content]]) -> Content:
    """Replace the content that the log keeps of one sub-call of a program; program and model are untouched.

    It belongs to Code Mode, in which a model writes a program that calls the tools. ``dispatch.exec`` is the outer
    call, that of ``run_code``. The end of the chain keeps the content. A failure leaves the original, and so does an
    answer that is no content, or that takes longer than ``policy_timeout``.
    """
    raise AssertionError("a specification is not called")


@hookspec(mode="waterfall", returns=(str,))
def approval_request(request: ApprovalRequest, next: Callable[[], Awaitable[ApprovalOutcome]]) -> ApprovalOutcome:
    """Answer for a person who is asked about a call; ``next()`` leaves it to the next channel.

    The end of the chain is ``unavailable``. A failure fails the call closed.
    """
    raise AssertionError("a specification is not called")


@hookspec(mode="emit", sync_only=True)
def approval_asked(request: ApprovalRequest) -> None:
    """The channels are about to be asked about a call. Failures are contained."""


@hookspec(mode="emit", sync_only=True)
def approval_decided(
    request: ApprovalRequest, outcome: ApprovalOutcome | Literal["failed"], channel: str | None
) -> None:
    """What became of a request, exactly once for each; ``failed`` where asking itself failed.

    ``channel`` is the plugin that answered, ``None`` where nobody did. Where the host never asks, there is a decision
    (``unavailable``) and no ``approval/asked``. Failures are contained.
    """
