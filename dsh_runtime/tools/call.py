"""One call: from entry to result, through every stage in order.

    enter -> tools/pre-execute -> guards -> tools/execute around the body -> tools/post-execute -> finish

Three kinds of end lead out of a stage. A *decision* against the call (a denial, a failed body) goes on to post-execute
as an error result. A *failure* of policy goes straight to the finish. What may not be swallowed (a caller's
cancellation, an interrupt) goes on its way after the finish has told the observers.
"""

from __future__ import annotations

import inspect
import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import evolve
from dsh_hookspecs import (
    UNSET,
    AbortError,
    AbortSignal,
    Accept,
    Allow,
    Ask,
    Block,
    ContextMessage,
    ExecutionToken,
    JsonValueError,
    ToolArgsError,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolOutputError,
    ToolProgress,
)
from dsh_hookspecs._signals import LinkedSignal

from dsh_runtime.core.errors import ScopeClosedError
from dsh_runtime.core.events import Listener, emit
from dsh_runtime.tools.asking import ask
from dsh_runtime.tools.body import CallerCancelled
from dsh_runtime.tools.definition import RESERVED_NAMES, ToolExecutionInput
from dsh_runtime.tools.dispatch import Dispatch, Refused, aborted
from dsh_runtime.tools.execution import Execution, make_execution
from dsh_runtime.tools.failures import (
    ORDINARY,
    ListenerFailed,
    clean,
    failure,
    failure_of,
    failure_of_listener,
    message_of,
    outward,
    shown,
    sole,
    text_content,
)
from dsh_runtime.tools.names import reached
from dsh_runtime.tools.policy import POST, PRE, PolicyChain, Ruling
from dsh_runtime.tools.record import put_on_record, recorded
from dsh_runtime.tools.registry import Guard, RegisteredTool
from dsh_runtime.tools.results import frozen_content, frozen_contexts, materialise
from dsh_runtime.tools.story import PASS, UNANSWERED, Note, raised
from dsh_runtime.values import Mismatch, snapshot_json

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber
    from dsh_runtime.tools.batch import Lane
    from dsh_runtime.tools.machine import Machine, Pipeline

_log = logging.getLogger("dsh.tools")
_NO_REASON: Final = "a guard denies this call"


class Call:
    """One trip of one tool through the pipeline."""

    __slots__ = (
        "_at_rest",
        "_input",
        "arguments_checked",
        "dispatch",
        "exec",
        "finalised",
        "finished",
        "machine",
        "notes",
        "pipeline",
        "signal",
        "token",
        "tool",
    )

    exec: Execution
    pipeline: Pipeline
    signal: LinkedSignal

    def __init__(self, machine: Machine, call: ToolExecutionInput) -> None:
        self.machine = machine
        self._input = call
        self.token = ExecutionToken()
        self.tool: RegisteredTool | None = None
        self.dispatch: Dispatch | None = None
        self.arguments_checked = False
        self.finalised = False
        self.finished = False
        self.notes: list[Note] | None = None
        self._at_rest: trio.Event | None = None

    async def run(self, lane: Lane | None = None) -> ToolExecutionResult:
        """Take the call through every stage. Raises only what may not be swallowed."""
        machine = self.machine
        if perf_counter() >= machine.yield_at:
            await machine.let_others_run()
        refused = self._enter_whatever_comes()
        try:
            if refused is not None and machine.kernel.held is not None:
                refused = await self._wait_at_gate(refused)
            journal = self.pipeline.journal
            machine.calls[self.token] = self
            if journal is not None:
                refused = await put_on_record(self, journal, refused)
            candidate = await self._stages(lane) if refused is None else refused
            if lane is not None:
                await lane.results_turn()
            result = self._final(candidate)
            if journal is not None:
                result = await recorded(self, journal, result)
            return self._observed(result)
        except BaseException as error:
            if self.finished:
                raise
            result = await self._let_through(error)
            if not isinstance(error, ORDINARY):
                raise
            _log.exception("call %r of %r met a bug of the host", self.exec.call_id, self.exec.name)
            return result
        finally:
            machine.calls.pop(self.token, None)
            # Call and dispatch know one another; without this each call would wait for the garbage collector.
            self.dispatch = None
            if self._at_rest is not None:
                self._at_rest.set()

    async def _stages(self, lane: Lane | None) -> ToolExecutionResult:
        pipeline, timeout = self.pipeline, self.machine.settings.policy_timeout
        try:
            denied = None
            if pipeline.pre:
                rulings: list[Ruling] = []
                await PolicyChain(PRE, pipeline.pre, self.exec, None, self.notes).decide(timeout, rulings)
                if type(rulings[0][0]) is not Allow:
                    denied = await self.objection(*rulings[0])
            if denied is None:
                denied = self.guarded()
            if lane is not None:
                lane.policy_done()
            if denied is None:
                dispatch = self.dispatch = Dispatch(self, pipeline.execute)
                result = await dispatch.run()
            else:
                result = denied
            if lane is not None:
                await lane.results_turn()
            if pipeline.post:
                verdicts: list[Ruling] = []
                await PolicyChain(POST, pipeline.post, self.exec, result, self.notes).decide(timeout, verdicts)
                if verdicts[0] is not POST.end:
                    result = self._carry_out(verdicts[0], result)
                result = self.after_abort(result)
            return result
        except ListenerFailed as failed:
            self._tell(failed)
            return failure_of_listener(failed)
        except Refused as refused:
            return refused.result

    def _tell(self, failed: ListenerFailed) -> None:
        """Tell whoever runs the host that policy failed, and where."""
        call_id = self.exec.call_id
        text = "call %r of %r fails closed: %s"
        _log.error(text, call_id, self.exec.name, failed, exc_info=failed.bug, extra={"dsh_call": call_id})

    # 1. Enter.

    def enter(self, dry_run: bool = False) -> ToolExecutionFailure | None:
        """Pin the definition, freeze the arguments, make the execution; an error result if the call goes no further."""
        call, machine = self._input, self.machine
        if type(call.name) is not str or type(call.call_id) is not str or not isinstance(call.signal, AbortSignal):
            return self._malformed()
        signal = self.signal = LinkedSignal((call.signal,))
        refused = None
        try:
            pipeline = machine.pipeline(call.agent)
            if call.parent is not None:
                pipeline = machine.nested(pipeline, call.parent)
            self.pipeline = pipeline
        except ScopeClosedError as error:
            pipeline = self.pipeline = machine.pipeline(None)
            refused = failure_of(error, plugin=None)
        except TypeError:  # The agent has no hash: it can be no scope's key.
            return self._malformed()
        else:
            self.tool = pipeline.find(call.name)
            if machine.kernel.closed_by is not None and call.parent not in machine.calls:
                refused = machine.gate_closed()
        arguments: Any = None
        try:
            arguments = self._frozen_arguments()
        except JsonValueError as error:
            if refused is None:
                refusal = ToolArgsError(f"the arguments are no lossless JSON: {error}", error.violations)
                refused = failure_of(refusal, plugin=None)
        self.exec = make_execution(
            call.call_id,
            call.name,
            arguments,
            signal,
            call.agent,
            call.parent,
            call.root_call_id,
            self.token,
            dry_run,
        )
        if refused is None and signal.poll():
            refused = aborted(signal, began=False)
        if refused is None and pipeline.mode != "native":
            refused = self._collapsed()
        return refused

    def _enter_whatever_comes(self) -> ToolExecutionFailure | None:
        """Enter; an input whose parts raise when they are looked at is answered like any other that is no call."""
        try:
            return self.enter()
        except ORDINARY:
            return self._malformed()

    async def _wait_at_gate(self, refused: ToolExecutionFailure) -> ToolExecutionFailure | None:
        """Wait, up to a deadline, while a plugin that has to stop first is reloaded; then enter again."""
        machine = self.machine
        with trio.move_on_after(machine.settings.reload_wait):
            while (held := machine.kernel.held) is not None and _is_gates(refused):
                undo = self.signal.add_callback(lambda held=held: machine.in_loop(held.wake))  # type: ignore[misc]
                try:
                    await held.wait()
                finally:
                    undo()
                if self.signal.poll():
                    return aborted(self.signal, began=False)
                again = self._enter_whatever_comes()
                if again is None:
                    return None
                refused = again
        return refused

    def _malformed(self) -> ToolExecutionFailure:
        """An input that is no call at all is answered, not raised."""
        call = self._input
        self.tool = None
        self.pipeline = self.machine.pipeline(None)
        self.signal = LinkedSignal(())
        call_id, name = (part if type(part) is str else shown(part) for part in (call.call_id, call.name))
        self.exec = make_execution(call_id, name, None, self.signal, None, None, None, self.token)
        text = (
            "a call has a text as call_id and name, an AbortSignal as signal and an agent that can be a scope's key, "
            f"not {shown(call.call_id)}, {shown(call.name)}, {shown(call.signal)} and {shown(call.agent)}"
        )
        return failure(text, code="INVALID_ARGS", name="ToolArgsError")

    def _frozen_arguments(self) -> Any:
        """The arguments, frozen; in one pass with the check of the tool's own schema where it has one."""
        depth = self.machine.settings.max_depth
        check = self.tool.definition.check if self.tool is not None else None
        if check is not None:
            try:
                frozen = check.compiled.freeze(self._input.arguments, depth)
            except Mismatch:
                pass
            else:
                self.arguments_checked = True
                return frozen
        return snapshot_json(self._input.arguments, max_depth=depth, path="arguments")

    def _collapsed(self) -> ToolExecutionFailure | None:
        """In mode ``code``, a direct call of a native tool was never the tool's; and a program starts no program."""
        tool, outer = self.tool, self.machine.calls.get(self._input.parent)
        if tool is None:
            return None
        if tool.name in RESERVED_NAMES:
            if outer is not None and outer.exec.name in RESERVED_NAMES:
                self.tool = None  # unknown, once policy has seen the name
            return None
        if self.pipeline.mode != "code" or outer is not None:
            return None
        self.tool = None
        return failure(
            f"no tool named {tool.name!r} can be called directly; call run_code with a program that "
            f"awaits {reached(tool.name)}(…)",
            code="UNKNOWN_TOOL",
            name="ToolNotFoundError",
        )

    # 2. and 3. Policy.

    async def objection(self, decision: Any, listener: Listener | None) -> ToolExecutionFailure | None:
        """The error result of a denial, or of a person's no; ``None`` if a person said yes."""
        if type(decision) is Ask:
            return await ask(self, decision.reason, listener)
        plugin = listener.plugin if listener is not None else None
        return failure(decision.reason, code="DENIED", name="ToolDenied", plugin=plugin)

    def guarded(self) -> ToolExecutionFailure | None:
        """Ask the guards, those of now and those of the call's entry; the first reason ends the matter.

        After them the signal is looked at again: a denial beats an abort.
        """
        guards = self.pipeline.guards
        if self.pipeline.version != self.machine.ledger.version:
            try:
                guards = self.machine.guards(self.pipeline)
            except ScopeClosedError as error:
                return failure_of(error, plugin=None)
        ask = self._guard_answer if self.notes is None else self._noted_guard_answer
        for guard in guards:
            reason = ask(guard)
            if reason is not None:
                return failure(reason or _NO_REASON, code="GUARDED", name="ToolGuarded", plugin=guard.plugin)
        return aborted(self.signal, began=False) if self.signal.poll() else None

    def _noted_guard_answer(self, guard: Guard) -> str | None:
        """A guard's reason, or ``None``, with a note of it."""
        assert self.notes is not None
        began = perf_counter()
        words = UNANSWERED
        try:
            reason = self._guard_answer(guard)
            words = PASS if reason is None else ("deny", reason)
        except ListenerFailed as failed:
            words = raised(failed)
            raise
        finally:
            self.notes.append(("guard", guard.plugin, None, words, began, perf_counter()))
        return reason

    def _guard_answer(self, guard: Guard) -> str | None:
        try:
            answer = guard.check(self.exec)
            if answer is None or isinstance(answer, str):
                return None if answer is None else str.__str__(answer)
        except BaseException as error:
            if outward(error) is not None:
                raise
            cause = sole(error)
            text = f"{guard.where} raised {type(cause).__name__}: {message_of(cause)}"
            raise ListenerFailed(guard.plugin, text, error) from error
        if inspect.iscoroutine(answer):
            answer.close()
        text = f"{guard.where} answered with {shown(answer)}; return a reason (deny) or None"
        raise ListenerFailed(guard.plugin, text)

    # 4. Dispatch.

    def still_visible(self) -> bool:
        """Whether a tool of this name is still visible (a newer version counts: the call keeps its own)."""
        return self.machine.visible_now(self.pipeline, self.exec.name)

    def after_abort(self, result: ToolExecutionResult) -> ToolExecutionResult:
        """An aborted call has no success."""
        if result.is_error or not self.signal.poll():
            return result
        began = self.dispatch is not None and self.dispatch.began
        return aborted(self.signal, began=began, contexts=result.additional_contexts)

    # 5. Review.

    def _carry_out(self, ruling: Ruling, result: ToolExecutionResult) -> ToolExecutionResult:
        decision, listener = ruling
        assert listener is not None, "only the end of the chain has no listener"
        subject = f"{listener.where} on 'tools/post-execute'"
        try:
            if type(decision) is Block:
                return self._blocked(decision, listener.plugin, subject)
            added = tuple(decision.additional_contexts)
            if decision.deferred_contexts is not None or decision.error_message is not None:
                result = self._retold(result, decision, subject)
            if decision.value is not UNSET:
                return self._revalued(result, decision.value, added, subject)
            contexts = (*result.additional_contexts, *added) if added else result.additional_contexts
            if decision.content is not None:
                content = frozen_content(decision.content, subject, self.machine.settings.max_depth)
                return evolve(result, content=content, additional_contexts=contexts)
            return evolve(result, additional_contexts=contexts) if added else result
        except ORDINARY as error:
            raise Refused(failure_of(error, plugin=listener.plugin, default_code="LISTENER_FAILED")) from error

    def _retold(self, result: ToolExecutionResult, decision: Accept, subject: str) -> ToolExecutionResult:
        """The result with what the tool deferred, or a failure's message, replaced."""
        if decision.deferred_contexts is not None:
            contexts = frozen_contexts(tuple(decision.deferred_contexts), self.machine.settings.max_depth)
            result = evolve(result, additional_contexts=contexts)
        if decision.error_message is None:
            return result
        if not result.is_error:
            raise ToolOutputError(f"{subject} gave an error message to a success; give content", code="LISTENER_FAILED")
        return evolve(result, error=evolve(result.error, message=clean(decision.error_message)))

    def _blocked(self, decision: Block, plugin: str, subject: str) -> ToolExecutionFailure:
        feedback = decision.feedback
        if isinstance(feedback, str):
            content: Any = text_content(f"Error: {feedback}")
            message = feedback
        else:
            content = frozen_content(feedback, subject, self.machine.settings.max_depth)
            texts = (block.get("text") for block in content if block["type"] == "text")
            message = "\n".join(text for text in texts if isinstance(text, str))
        return failure(
            message or "the result was blocked",
            code="BLOCKED",
            name="ToolBlocked",
            plugin=plugin,
            content=content,
            contexts=tuple(decision.additional_contexts),
        )

    def _revalued(self, result: ToolExecutionResult, value: Any, added: Any, subject: str) -> ToolExecutionResult:
        if result.is_error or self.dispatch is None:
            text = f"{subject} gave a value to a failed result; give content, or block it"
            raise ToolOutputError(text, code="LISTENER_FAILED")
        return self.dispatch.rendered(value, (*result.additional_contexts, *added), result.concludes_turn)

    # 6. Finish.

    def _final(self, candidate: ToolExecutionResult) -> ToolExecutionResult:
        """The candidate made lossless and frozen for good, with the tool's own last word on its content."""
        depth = self.machine.settings.max_depth
        result = self._materialised(candidate, depth)
        if self.tool is not None and self.tool.definition.finalize_content is not None and not self.finalised:
            self.finalised = True
            try:
                result = self._finalised(self.tool, result, depth)
            except ORDINARY as error:
                result = failure_of(error, plugin=self.tool.plugin)
        return result

    def _observed(self, result: ToolExecutionResult) -> ToolExecutionResult:
        """Tell the observers; nothing changes the result any more."""
        self.finished = True
        if self.pipeline.result:
            emit(self.pipeline.result, self.exec, result)
        return result

    def _materialised(self, candidate: ToolExecutionResult, depth: int) -> ToolExecutionResult:
        if not candidate.is_error and self.dispatch is not None and self.dispatch.is_own(candidate):
            return candidate
        try:
            return materialise(candidate, depth)
        except ORDINARY as error:
            return failure_of(error, plugin=None)

    def _finalised(self, tool: RegisteredTool, result: ToolExecutionResult, depth: int) -> ToolExecutionResult:
        finalize = tool.definition.finalize_content
        assert finalize is not None
        content = finalize(self.exec, result)
        if content is None:
            return result
        if inspect.iscoroutine(content):
            content.close()
            raise ToolOutputError(f"finalize_content of tool {tool.name!r} is async; it has to be sync")
        return evolve(result, content=frozen_content(content, f"finalize_content of tool {tool.name!r}", depth))

    async def _let_through(self, error: BaseException) -> ToolExecutionResult:
        """End a call that a cancellation or an interrupt goes through: record it, tell the observers."""
        if isinstance(error, ORDINARY):
            result: ToolExecutionResult = failure_of(error, plugin=None)
        else:
            self.signal._abort(CallerCancelled("the caller was cancelled"))
            began = self.dispatch is not None and self.dispatch.began
            result = aborted(self.signal, began=began, contexts=self._contexts_so_far())
        try:
            result = self._final(result)
        except BaseException as again:
            # The finalizer is interrupted too: what goes on its way is the first interrupt.
            result = failure_of(again, plugin=None)
        if self.pipeline.journal is not None:
            result = await recorded(self, self.pipeline.journal, result)
        return self._observed(result)

    def _contexts_so_far(self) -> tuple[ContextMessage, ...]:
        """What the body has deferred, of a call that is cancelled from outside."""
        if self.dispatch is None or self.dispatch.context is None:
            return ()
        try:
            return frozen_contexts(self.dispatch.context.contexts, self.machine.settings.max_depth)
        except ToolOutputError:
            return ()

    # While the call is under way.

    @property
    def tool_fiber(self) -> Fiber | None:
        """The fiber whose tool this call is pinned to."""
        return self.tool.fiber if self.tool is not None else None

    def abort(self, reason: str) -> None:
        """Abort the call's own signal."""
        self.signal._abort(AbortError(reason))

    async def rest(self) -> None:
        """Wait until the call has come to rest."""
        if self.token in self.machine.calls:
            if self._at_rest is None:
                self._at_rest = trio.Event()
            await self._at_rest.wait()

    def progress(self, progress: ToolProgress) -> None:
        """Tell the observers of ``tools/progress``, from whatever thread; a call that has ended says nothing more."""
        self.machine.in_loop(self._emit_progress, progress)

    def _emit_progress(self, progress: ToolProgress) -> None:
        if not self.finished and self.pipeline.progress:
            emit(self.pipeline.progress, self.exec, progress)


def _is_gates(refused: ToolExecutionFailure) -> bool:
    return refused.error.info is not None and refused.error.info.code == "GATE_CLOSED"
