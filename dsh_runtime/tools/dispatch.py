"""`tools/execute`: the wrappers around the body, and the body itself.

Each wrapper has its own view of the call, on which it may assign the signal that what lies behind it sees. Every result
that the dispatch made itself is known; any other result that a wrapper returns is checked like a body's own value.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import trio
from attrs import evolve
from dsh_hookspecs import (
    AbortSignal,
    ContextMessage,
    ToolArgsError,
    ToolErrorInfo,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolExecutionSuccess,
    ToolFailure,
    ToolOutputError,
)

from dsh_runtime.core.chain import discard
from dsh_runtime.core.errors import HookError
from dsh_runtime.core.events import Listener
from dsh_runtime.tools.body import Link, Raised, drive, make_runner
from dsh_runtime.tools.execution import DispatchView, RunContext
from dsh_runtime.tools.failures import ORDINARY, ListenerFailed, failure, failure_of, message_of, reraise_outer, sole
from dsh_runtime.tools.registry import RegisteredTool
from dsh_runtime.tools.results import canonical, frozen_message, success

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call

_RESULTS = (ToolExecutionSuccess, ToolExecutionFailure)


class Refused(Exception):
    """Leads straight to the finish with an error result."""

    def __init__(self, result: ToolExecutionFailure) -> None:
        super().__init__(result.error.message)
        self.result = result


class DispatchNext:
    """The ``next`` of one wrapper; what it gives is itself, and runs when it is awaited."""

    __slots__ = ("_dispatch", "_index", "_view")

    def __init__(self, dispatch: Dispatch, index: int, view: DispatchView) -> None:
        self._dispatch = dispatch
        self._index = index
        self._view = view

    def __call__(self) -> DispatchNext:
        if self._dispatch.closed:
            raise HookError("next() of 'tools/execute' is called after its stage has ended; call it before returning")
        return self

    def __await__(self) -> Generator[Any, Any, ToolExecutionResult]:
        dispatch = self._dispatch
        if dispatch.closed:
            self()
        dispatch.running += 1
        try:
            return (yield from dispatch.run(self._index, self._view._signal).__await__())
        finally:
            dispatch.ended()


class Dispatch:
    """The dispatch of one call."""

    __slots__ = (
        "_args",
        "_call",
        "_idle",
        "_listeners",
        "began",
        "closed",
        "concluded",
        "failed",
        "made",
        "running",
    )

    def __init__(self, call: Call, listeners: Sequence[Listener]) -> None:
        self._call = call
        self._listeners = listeners
        self._args: Any = None
        self._idle: trio.Event | None = None
        self.made: list[ToolExecutionResult] = []
        self.failed: Exception | None = None
        self.began = False
        self.closed = False
        self.concluded = False
        self.running = 0

    async def result(self) -> ToolExecutionResult:
        """Run wrappers and body; raise :class:`Refused` or :class:`ListenerFailed` if a wrapper failed."""
        if not self._listeners:
            return await self._body(self._call.signal)
        try:
            result = await self.run(0, self._call.signal)
        finally:
            if self.running:
                await self._rest()
            self.closed = True
        if self.failed is not None:
            raise self.failed
        return result

    async def run(self, index: int, signal: AbortSignal) -> ToolExecutionResult:
        """Run the wrappers from ``index`` on, then the body."""
        if index == len(self._listeners):
            return await self._body(signal)
        listener = self._listeners[index]
        call = self._call
        tool = call.tool
        view = DispatchView(call.exec, signal, tool.definition if tool is not None else None)
        try:
            answer = listener.call(view, DispatchNext(self, index + 1, view))
            if type(answer) is CoroutineType or hasattr(answer, "__await__"):
                answer = await answer
        except Refused:
            raise
        except ORDINARY as error:
            raise self._fail(listener, error) from error
        except BaseExceptionGroup as group:
            self._fail(listener, group)
            raise
        if any(answer is result for result in self.made):
            return answer  # type: ignore[no-any-return]
        return self._adopt(listener, answer)

    def ended(self) -> None:
        """One ``next()`` has ended."""
        self.running -= 1
        if self.running == 0 and self._idle is not None:
            self._idle.set()

    def rendered(self, value: Any, contexts: Sequence[ContextMessage], concludes: bool = False) -> ToolExecutionSuccess:
        """A value as the tool's own success: checked, frozen, rendered, projected."""
        call = self._call
        tool = call.tool
        assert tool is not None
        depth = call.machine.settings.max_depth
        frozen = canonical(tool, value, depth)
        return success(
            tool,
            self.arguments(tool),
            frozen,
            top_level=call.exec.parent is None,
            max_depth=depth,
            contexts=contexts,
            concludes_turn=concludes,
        )

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
        with trio.CancelScope(shield=True):
            while self.running:
                self._idle = trio.Event()
                await self._idle.wait()

    # Wrappers.

    def _adopt(self, listener: Listener, answer: Any) -> ToolExecutionResult:
        """A result that a wrapper made itself, checked like a body's own value."""
        if type(answer) not in _RESULTS:
            discard(answer)
            problem = f"answered with {answer!r:.200}; return a ToolExecutionSuccess, a ToolExecutionFailure, or what next() gave"
            raise self._fail(listener, None, problem)
        if answer.is_error:
            result: ToolExecutionResult = self._attributed(listener, answer)
        elif self._call.tool is None:
            raise self._refuse(unknown_tool(self._call))
        else:
            try:
                concludes = answer.concludes_turn and self.concluded
                result = self.rendered(answer.value, answer.additional_contexts, concludes)
            except (ToolOutputError, ToolArgsError) as error:
                raise self._refuse(failure_of(error, plugin=listener.plugin)) from error
        self.made.append(result)
        return result

    def _attributed(self, listener: Listener, answer: ToolExecutionFailure) -> ToolExecutionFailure:
        """A wrapper's failure names the wrapper's plugin, unless it names one itself."""
        if not isinstance(answer.error, ToolFailure):
            raise self._fail(listener, None, f"gave a failure whose error is {answer.error!r:.200}; give a ToolFailure")
        info = answer.error.info
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

    async def _body(self, signal: AbortSignal) -> ToolExecutionResult:
        """Run the body once, and give its normalised result."""
        call = self._call
        own = call.signal
        fused = own if signal is own else AbortSignal.any((own, signal))
        if fused.aborted:
            return self._keep(aborted(fused, began=self.began))
        tool = call.tool
        if tool is None or not call.still_visible():
            return self._keep(unknown_tool(call))
        try:
            args = self.arguments(tool)
        except ORDINARY as error:
            return self._keep(failure_of(error, plugin=tool.plugin))
        run = RunContext(call.exec, fused, call)
        outcome = await self._run(tool, args, run, fused)
        return self._keep(self._normalise(tool, run, fused, outcome))

    async def _run(self, tool: RegisteredTool, args: Any, run: RunContext, fused: AbortSignal) -> Any:
        """The body's value, or :class:`Raised` for what it raised or for its being stopped."""
        machine = self._call.machine
        if tool.runner is None:
            tool.runner = make_runner(tool.definition.execute)
        self.began = True
        scope = trio.CancelScope()
        link = Link(scope, fused, self._call.signal, machine.canceller(scope), machine.clock)
        try:
            with scope:
                return await drive(tool.runner(args, run, machine.limiter), link)
        except ORDINARY as error:
            return Raised(error)
        except BaseExceptionGroup as group:
            reraise_outer(group)
            return Raised(group)
        # The scope swallowed its own cancellation: the signal stopped the body.
        return Raised(fused.reason or trio.TooSlowError())

    def _normalise(
        self, tool: RegisteredTool, run: RunContext, fused: AbortSignal, outcome: Any
    ) -> ToolExecutionResult:
        contexts: Sequence[ContextMessage] = ()
        try:
            if run.contexts:
                depth = self._call.machine.settings.max_depth
                contexts = tuple(frozen_message(message, depth) for message in run.contexts)
            if type(outcome) is Raised:
                result: ToolExecutionResult = failure_of(outcome.error, plugin=tool.plugin, contexts=contexts)
            else:
                result = self.rendered(outcome, contexts, run.concluded)
        except ORDINARY as error:
            result = failure_of(error, plugin=tool.plugin, contexts=contexts)
        if fused.aborted and (not result.is_error or _code(result) is None):
            return aborted(fused, began=True, contexts=contexts)
        return result

    def _keep(self, result: ToolExecutionResult) -> ToolExecutionResult:
        self.made.append(result)
        if not result.is_error and result.concludes_turn:
            self.concluded = True
        return result


def aborted(
    signal: AbortSignal, *, began: bool, contexts: Sequence[ContextMessage] = ()
) -> ToolExecutionFailure:
    """The result of a call whose signal stopped it before or after its body began."""
    reason = signal.reason
    why = f": {message_of(reason)}" if reason is not None else ""
    if began:
        return failure(f"the call was aborted{why}", code="ABORTED", name="AbortError", contexts=contexts)
    message = f"the call was aborted before its tool began{why}"
    return failure(message, code="ABORTED_BEFORE_DISPATCH", name="AbortError", contexts=contexts)


def unknown_tool(call: Call) -> ToolExecutionFailure:
    """The result of a call whose tool is not visible."""
    return failure(f"no tool named {call.exec.name!r} is available", code="UNKNOWN_TOOL", name="ToolNotFoundError")


def _code(result: ToolExecutionFailure) -> str | None:
    return result.error.info.code if result.error.info is not None else None


