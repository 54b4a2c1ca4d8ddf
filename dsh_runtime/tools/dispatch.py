"""`tools/execute`: the wrappers around the body, and the body itself.

Each wrapper has its own view of the call, on which it may assign the signal that what lies behind it sees. Every result
that the dispatch made itself is known; any other result that a wrapper returns is checked like a body's own value.
"""

from __future__ import annotations

import logging
import types
from collections.abc import Awaitable, Generator, Sequence
from functools import partial
from time import perf_counter
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

import trio
from attrs import evolve
from dsh_hookspecs import (
    AbortError,
    AbortSignal,
    ContextMessage,
    HarnessError,
    ToolArgsError,
    ToolErrorInfo,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolExecutionSuccess,
    ToolFailedError,
    ToolFailure,
)
from dsh_hookspecs._signals import LinkedSignal

from dsh_runtime.core.chain import discard, until_idle
from dsh_runtime.core.errors import HookError
from dsh_runtime.core.events import Listener
from dsh_runtime.tools.body import CallerCancelled
from dsh_runtime.tools.definition import ToolReply
from dsh_runtime.tools.execution import DispatchView, RunContext, make_run_context, make_view
from dsh_runtime.tools.failures import (
    ORDINARY,
    ListenerFailed,
    Raised,
    failing,
    failure,
    failure_of,
    message_of,
    outward,
    shown,
    sole,
)
from dsh_runtime.tools.policy import settled
from dsh_runtime.tools.registry import RegisteredTool
from dsh_runtime.tools.results import (
    canonical,
    default_content,
    frozen_content,
    frozen_contexts,
    make_success,
    projected_meta,
    rendered,
)
from dsh_runtime.tools.scope import run_body
from dsh_runtime.tools.story import PASS, SUCCESS, describe, raised

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call

_log = logging.getLogger("dsh.tools")
_RESULTS = (ToolExecutionSuccess, ToolExecutionFailure)


class Refused(Exception):  # noqa: N818 - control flow
    """Leads straight to the finish with an error result."""

    def __init__(self, result: ToolExecutionFailure) -> None:
        super().__init__(result.error.message)
        self.result = result


class Dispatch:
    """The dispatch of one call."""

    __slots__ = ("_args", "_call", "_listeners", "closed", "concluded", "context", "failed", "idle", "made", "running")

    def __init__(self, call: Call, listeners: Sequence[Listener]) -> None:
        self._call = call
        self._listeners = listeners
        self.made: list[ToolExecutionResult] = []
        self.failed: Exception | None = None
        self.context: RunContext | None = None
        self.closed = False
        self.concluded = False
        self.running = 0
        self._args: Any = None
        self.idle: trio.Event | None = None

    @property
    def began(self) -> bool:
        """Whether the body has begun (the last attempt's, where there were several)."""
        return self.context is not None and self.context.began

    @types.coroutine
    def run(self) -> Generator[Any, Any, ToolExecutionResult]:
        """Run wrappers and body; raise :class:`Refused` or :class:`ListenerFailed` if a wrapper failed."""
        signal = self._call.signal
        if not self._listeners:
            return (yield from self._body(signal))
        try:
            result = yield from self._wrapped(0, signal)
        finally:
            if self.running:
                yield from self._rest().__await__()
            self.closed = True
        # A failure that a wrapper in front has caught is a failure all the same.
        if self.failed is not None:
            raise self.failed
        return self._call.after_abort(result)

    def next(self, index: int, view: DispatchView) -> Awaitable[ToolExecutionResult]:
        """What ``next()`` of the wrapper in front of ``index`` gives; it runs when it is awaited."""
        if self.closed:
            raise self._too_late()
        signal = view._signal  # not the property, which costs thrice as much
        return self._body(signal) if index == len(self._listeners) else self._wrapped(index, signal)

    @types.coroutine
    def _wrapped(self, index: int, signal: AbortSignal) -> Generator[Any, Any, ToolExecutionResult]:
        """Run the wrappers from ``index`` on, then the body."""
        if self.closed:
            raise self._too_late()
        listener = self._listeners[index]
        view = make_view(self._call, signal)
        notes = self._call.notes
        began = perf_counter() if notes is not None else 0.0
        self.running += 1
        try:
            answer = listener.call(view, partial(self.next, index + 1, view))
            if type(answer) is CoroutineType or type(answer) is GeneratorType:
                answer = yield from answer  # type: ignore[misc]  # a generator-based coroutine may
            if type(answer) not in _RESULTS:
                answer = yield from settled(answer)
        except (Refused, ListenerFailed) as failed:
            if notes is not None:
                notes.append((listener.event, listener.plugin, listener.name, raised(failed), began, perf_counter()))
            self.failed = self.failed or failed
            raise
        except BaseException as error:
            if notes is not None:
                notes.append((listener.event, listener.plugin, listener.name, raised(error), began, perf_counter()))
            goes_on = outward(error)
            if goes_on is None:
                raise self._fail(listener, error) from error
            if failing(error):
                self._fail(listener, error)
            raise goes_on from None
        finally:
            self.running -= 1
            if self.idle is not None and not self.running:
                self.idle.set()
        made = self.made
        own = (made and made[-1] is answer) or self.is_own(answer)
        if notes is not None:
            words = PASS if own else describe(answer)
            notes.append((listener.event, listener.plugin, listener.name, words, began, perf_counter()))
        return answer if own else self._adopt(listener, answer)

    def _too_late(self) -> HookError:
        return HookError("next() of 'tools/execute' is called after its stage has ended; call it before returning")

    def is_own(self, answer: Any) -> bool:
        """Whether a result is the very one that this dispatch made."""
        for result in self.made:  # noqa: SIM110 - a generator costs more than the loop
            if result is answer:
                return True
        return False

    def rendered(self, value: Any, contexts: Sequence[ContextMessage], concludes: bool = False) -> ToolExecutionSuccess:
        """A value as the tool's own success: checked, frozen, rendered, projected."""
        call = self._call
        tool = call.tool
        assert tool is not None
        depth = call.machine.settings.max_depth
        frozen = canonical(tool, value, depth)
        output = tool.definition.output
        if output.render is None and output.presentation_meta is None:
            return make_success(frozen, default_content(frozen), None, contexts, concludes)
        content, meta = rendered(tool, self.arguments(tool), frozen, call.exec.parent is None, depth)
        return make_success(frozen, content, meta, contexts, concludes)

    def arguments(self, tool: RegisteredTool) -> Any:
        """What the tool's functions get as ``args``; :class:`ToolArgsError` if its schema refuses them."""
        check = tool.definition.check
        call = self._call
        if check is None:
            return call.exec.arguments
        if not call.arguments_checked:
            violations = check.compiled.explain_arguments(call.exec.arguments)
            if violations:
                listed = "; ".join(str(violation) for violation in violations[:5])
                more = f"; and {len(violations) - 5} more" if len(violations) > 5 else ""
                raise ToolArgsError(f"tool {tool.name!r} refuses its arguments: {listed}{more}", violations)
        if check.convert is None:
            return call.exec.arguments
        if self._args is None:
            self._args = check.convert(call.exec.arguments)
        return self._args

    async def _rest(self) -> None:
        """Wait for what a wrapper has left to another task; its signal tells a body there that the caller is gone."""
        try:
            await until_idle(self)
        except trio.Cancelled:
            self._call.signal._abort(CallerCancelled("the caller was cancelled"))
            with trio.CancelScope(shield=True):
                await until_idle(self)
            raise

    # Wrappers.

    def _adopt(self, listener: Listener, answer: Any) -> ToolExecutionResult:
        """A result that a wrapper made itself, checked like a body's own value."""
        if type(answer) not in _RESULTS:
            discard(answer)
            wanted = "a ToolExecutionSuccess, a ToolExecutionFailure, or what next() gave"
            problem = f"answered with {shown(answer)}; return {wanted}"
            raise self._fail(listener, None, problem)
        if answer.is_error:
            result: ToolExecutionResult = self._attributed(listener, answer)
        elif self._call.tool is None:
            raise self._refuse(unknown_tool(self._call))
        else:
            try:
                contexts = frozen_contexts(answer.additional_contexts, self._call.machine.settings.max_depth)
                result = self.rendered(answer.value, contexts, bool(answer.concludes_turn and self.concluded))
            except ORDINARY as error:
                raise self._refuse(failure_of(error, plugin=listener.plugin)) from error
        self.made.append(result)
        return result

    def _attributed(self, listener: Listener, answer: ToolExecutionFailure) -> ToolExecutionFailure:
        """A wrapper's failure names the wrapper's plugin, unless it names one itself."""
        info = answer.error.info if isinstance(answer.error, ToolFailure) else ...
        if info is not None and not isinstance(info, ToolErrorInfo):
            wanted = "a ToolFailure, its info a ToolErrorInfo"
            problem = f"gave a failure whose error is {shown(answer.error)}; give {wanted}"
            raise self._fail(listener, None, problem)
        if info is None:
            info = ToolErrorInfo("ToolFailure", None, listener.plugin)
        elif info.plugin is None:
            info = evolve(info, plugin=listener.plugin)
        else:
            return answer
        return evolve(answer, error=ToolFailure(answer.error.message, info))

    def _fail(self, listener: Listener, error: BaseException | None, what: str = "") -> Exception:
        if isinstance(error, (ListenerFailed, Refused)):
            return error
        if error is not None:
            cause = sole(error)
            what = f"raised {type(cause).__name__}: {message_of(cause)}"
        failed = ListenerFailed(listener.plugin, f"{listener.where} on 'tools/execute' {what}", error)
        self.failed = self.failed or failed
        return failed

    def _refuse(self, result: ToolExecutionFailure) -> Refused:
        refused = Refused(result)
        self.failed = self.failed or refused
        return refused

    # The body.

    @types.coroutine
    def _body(self, signal: AbortSignal) -> Generator[Any, Any, ToolExecutionResult]:
        """Run the body once, and give its normalised result."""
        if self.closed:
            raise self._too_late()
        call = self._call
        own = call.signal
        fused = own if signal is own else _fused(own, signal)
        if self._listeners and fused.poll():
            return self._keep(aborted(fused, began=False))
        tool = call.tool
        if tool is None or not (call.pipeline.version == call.machine.ledger.version or call.still_visible()):
            return self._keep(unknown_tool(call))
        try:
            args = self.arguments(tool)
        except ORDINARY as error:
            return self._keep(failure_of(error, plugin=tool.plugin))
        run = self.context = make_run_context(call, fused)
        notes = call.notes
        began = perf_counter() if notes is not None else 0.0
        self.running += 1
        outcome: Any
        try:
            outcome = yield from run_body(tool.run(args, run, call.machine.threads), fused, call)
        except BaseException as error:
            goes_on = outward(error)
            if goes_on is not None:
                raise goes_on from None
            outcome = Raised(error)
        finally:
            self.running -= 1
            if self.idle is not None and not self.running:
                self.idle.set()
        result = self._normalise(tool, run, outcome)
        if fused.poll():
            if type(own.reason) is CallerCancelled:
                # The body has swallowed its caller's cancellation; nothing but the finish may come after it.
                yield from trio.lowlevel.checkpoint().__await__()  # noqa: ASYNC105 - this is the await
            if not result.is_error or _code(result) is None:
                result = aborted(fused, began=run.began, contexts=result.additional_contexts)
        if notes is not None:
            words = describe(result) if result.is_error else SUCCESS
            notes.append(("body", tool.plugin, tool.name, words, began, perf_counter()))
        return self._keep(result)

    def _normalise(self, tool: RegisteredTool, run: RunContext, outcome: Any) -> ToolExecutionResult:
        """The result of what a body gave or raised, whatever its signal says."""
        contexts: Sequence[ContextMessage] = ()
        try:
            if run.contexts:
                contexts = frozen_contexts(run.contexts, self._call.machine.settings.max_depth)
            if type(outcome) is Raised:
                if not isinstance(outcome.error, (HarnessError, AbortError)):
                    _log.info("tool %r of plugin %r raised", tool.name, tool.plugin, exc_info=outcome.error)
                said = self._said(tool, outcome.error)
                return failure_of(outcome.error, plugin=tool.plugin, contexts=contexts, content=said)
            if type(outcome) is ToolReply:
                return self._replied(tool, outcome, contexts, run.concluded)
            return self.rendered(outcome, contexts, run.concluded)
        except ORDINARY as error:
            return failure_of(error, plugin=tool.plugin, contexts=contexts)

    def _replied(
        self, tool: RegisteredTool, reply: ToolReply, contexts: Sequence[ContextMessage], concludes: bool
    ) -> ToolExecutionSuccess:
        """A success whose content the body has made itself."""
        depth = self._call.machine.settings.max_depth
        content = frozen_content(reply.content, f"tool {tool.name!r}", depth)
        frozen = canonical(tool, reply.value, depth)
        meta = projected_meta(tool, self.arguments(tool), frozen, self._call.exec.parent is None, depth)
        return make_success(frozen, content, meta, contexts, concludes)

    def _said(self, tool: RegisteredTool, error: BaseException) -> Any:
        """The content that a tool's own failure brings along; ``None`` where it brings none."""
        error = sole(error)
        if not isinstance(error, ToolFailedError) or error.content is None:
            return None
        depth = self._call.machine.settings.max_depth
        return frozen_content(error.content, f"the failure of tool {tool.name!r}", depth)

    def _keep(self, result: ToolExecutionResult) -> ToolExecutionResult:
        self.made.append(result)
        if not result.is_error and result.concludes_turn:
            self.concluded = True
        return result


def _fused(own: LinkedSignal, assigned: AbortSignal) -> LinkedSignal:
    """The signal that a wrapper has assigned, with the call's own in it."""
    if type(assigned) is LinkedSignal and assigned._sources[:1] == (own,):
        return assigned
    return LinkedSignal((own, assigned))


def aborted(signal: AbortSignal, *, began: bool, contexts: Sequence[ContextMessage] = ()) -> ToolExecutionFailure:
    """The result of a call whose signal stopped it before or after its body began."""
    reason = signal.reason
    why = f": {message_of(reason)}" if reason is not None else ""
    if began:
        return failure(f"the call was aborted{why}", code="ABORTED", name="AbortError", contexts=contexts)
    message = f"the call was aborted before its tool began{why}"
    return failure(message, code="ABORTED_BEFORE_DISPATCH", name="AbortError", contexts=contexts)


def unknown_tool(call: Call) -> ToolExecutionFailure:
    """The result of a call whose tool is not visible."""
    closed = "; the host is closed: call it inside 'async with open_host(…)'" if call.machine.kernel.closed else ""
    message = f"no tool named {call.exec.name!r} is available{closed}"
    return failure(message, code="UNKNOWN_TOOL", name="ToolNotFoundError")


def _code(result: ToolExecutionFailure) -> str | None:
    return result.error.info.code if result.error.info is not None else None
