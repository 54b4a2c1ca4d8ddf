"""Calls that follow a plan: what each listener, guard, wrapper and body does is read from the call's arguments.

A plan says one word for each listener of a stage, outermost first. :func:`may_start` is the oracle: it knows from the
contract alone whether the body of a planned call may start.
"""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import trio
import trio.testing
from attrs import asdict, evolve, frozen
from pipeline_kit import Approval, Recorder, Result, callbacks_of, message, plain, text

from dsh_runtime import (
    AbortController,
    Accept,
    Allow,
    Ask,
    Block,
    ContextMessage,
    Deny,
    HarnessError,
    ToolExecutionFailure,
    ToolExecutionSuccess,
    ToolFailure,
)

PLACES = 3  # listeners of each stage
PRE = [
    "pass",
    "pass async",
    "allow",
    "ask",
    "deny",
    "raise",
    "raise coded",
    "exit",
    "rubbish",
    "nothing",
    "abort",
    "cancel",
    "soften",
    "override",
    "twice",
    "drop",
    "hang",
    "fail at first",
]
WRAP = [
    "pass",
    "pass async",
    "raise",
    "raise coded",
    "exit",
    "rubbish",
    "nothing",
    "own",
    "own bad",
    "own bad context",
    "own failure",
    "abort",
    "cancel",
    "soften",
    "twice",
    "fresh signal",
    "expired signal",
    "no signal",
    "raise after",
    "background",
]
POST = [
    "pass",
    "pass async",
    "accept",
    "content",
    "value",
    "bad content",
    "bad value",
    "both",
    "block",
    "raise",
    "exit",
    "rubbish",
    "nothing",
    "abort",
    "cancel",
    "soften",
    "twice",
    "drop",
    "hang",
]
GUARD = ["none", "deny", "deny silently", "raise", "exit", "rubbish", "abort"]
BODY = [
    "value",
    "wait",
    "bad value",
    "no json",
    "raise",
    "raise coded",
    "raise group",
    "exit",
    "abort",
    "abort and wait",
    "abort and clean up badly",
    "cancel",
    "nested",
    "thread",
    "thread raises",
]
APPROVAL = ["allowed-once", "rejected", "expired", "cancelled", "unavailable", "rubbish", "raise", "abort", "cancel"]
FAILING = {"raise", "raise coded", "exit", "rubbish", "nothing", "hang", "fail at first"}


@frozen
class Plan:
    """What the listeners of each stage, the guards, the person and the body do about one call."""

    pre: Sequence[str] = ()
    guards: Sequence[str] = ()
    wrap: Sequence[str] = ()
    post: Sequence[str] = ()
    body: str = "value"
    approval: str = "allowed-once"
    parallel: bool = True

    @property
    def tool(self) -> str:
        return "threaded" if self.body.startswith("thread") else "echo"


# The oracle


def may_start(plan: Plan) -> bool:
    """Whether policy lets the body of this call start (wrappers aside)."""
    verdict = _heard(plan.pre, 0)
    if verdict == "ask":
        verdict = "allow" if plan.approval == "allowed-once" else "deny"
    return verdict == "allow" and set(plan.guards) <= {"none"} and "abort" not in _reached(plan.pre)


def _heard(pre: Sequence[str], index: int) -> str:
    """The verdict from ``index`` on: ``allow``, ``ask``, ``deny``, ``fail`` or ``cancel``."""
    if index == len(pre):
        return "allow"
    word = pre[index]
    if word in FAILING:
        return "fail"
    if word in ("deny", "cancel"):
        return word
    behind = _heard(pre, index + 1)
    if word == "override" and behind in ("ask", "deny"):
        return "allow"
    if word in ("allow", "drop", "ask"):
        return max("ask" if word == "ask" else "allow", behind, key=["allow", "ask", "deny", "fail", "cancel"].index)
    return behind


def _reached(pre: Sequence[str]) -> Sequence[str]:
    """The listeners that run: up to the first that ends the stage."""
    for index, word in enumerate(pre):
        if word in FAILING or word in ("deny", "cancel"):
            return pre[: index + 1]
    return pre


# What the words do


class Planned:
    """A host whose listeners follow the plans of the calls that they see."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self.started: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self.observed: dict[str, list[Result]] = {}
        self.tokens: list[Any] = []
        self._failed: set[Any] = set()
        self.callers: dict[str, AbortController] = {}
        self.scopes: dict[str, trio.CancelScope] = {}
        self.agent = rec.ctx.scope().key
        self._background: trio.Nursery | None = None
        rec.ctx.provide("approval", Approval(then=self._ask))
        for place in range(PLACES):
            rec.ctx.on("tools/pre-execute", self._pre(place))
            rec.ctx.on("tools/execute", self._wrap(place))
            rec.ctx.on("tools/post-execute", self._post(place))
            rec.ctx.tools.guard(self._guard(place))
        rec.ctx.on("tools/result", self._observe)
        rec.tool("echo", self._body, finalized=False, is_concurrency_safe=_parallel)
        rec.ctx.tools.register(
            plain(self._threaded, {"type": "string"}, name="threaded", is_concurrency_safe=_parallel)
        )
        rec.tool("inner", lambda args, exec: "inner", finalized=False)

    async def run(self, plans: Sequence[Plan]) -> list[Result | None]:
        """Run all calls side by side; ``None`` stands for a call whose scope was cancelled."""
        outcomes: list[Result | None] = [None] * len(plans)

        async def one(index: int) -> None:
            outcomes[index] = await self._call(str(index), plans[index])

        async with trio.open_nursery() as background:
            self._background = background
            async with trio.open_nursery() as nursery:
                for index in range(len(plans)):
                    nursery.start_soon(one, index)
        return outcomes

    async def run_batch(self, plans: Sequence[Plan], max_parallel: int) -> list[Result]:
        """Run all calls as one batch."""
        inputs = []
        for index, plan in enumerate(plans):
            caller = self.callers[str(index)] = AbortController()
            more = {"call_id": str(index), "signal": caller.signal, "agent": self.agent}
            inputs.append(self.rec.input(plan.tool, asdict(plan), **more))
        async with trio.open_nursery() as self._background:
            return list(await self.rec.ctx.tools.execute_batch(inputs, max_parallel))

    async def _call(self, call_id: str, plan: Plan) -> Result | None:
        caller = self.callers[call_id] = AbortController()
        with trio.CancelScope() as scope:
            self.scopes[call_id] = scope
            return await self.rec.call(plan.tool, asdict(plan), call_id=call_id, signal=caller.signal, agent=self.agent)
        return None

    def callbacks(self) -> int:
        return sum(callbacks_of(caller.signal) for caller in self.callers.values())

    def _observe(self, exec: Any, result: Result) -> None:
        self.observed.setdefault(exec.call_id, []).append(result)
        self.tokens.append(exec.token)

    async def _cancel(self, exec: Any) -> None:
        self.scopes[exec.call_id].cancel()
        await trio.lowlevel.checkpoint()

    def _abort(self, exec: Any) -> None:
        self.callers[exec.call_id].abort()

    async def _common(self, word: str, exec: Any, next: Any, milder: Any) -> Any:
        """What a word does that means the same at every stage."""
        if word == "raise":
            raise RuntimeError("planned")
        if word == "raise coded":
            raise HarnessError("planned", code="PLANNED")
        if word == "exit":
            raise SystemExit(3)
        if word == "abort":
            self._abort(exec)
        if word == "cancel":
            await self._cancel(exec)
        if word == "hang":
            await trio.sleep_forever()
        if word == "soften":
            return await _soften(next, milder)
        if word == "twice":
            await next()
        return {"rubbish": "rubbish", "nothing": None}[word] if word in ("rubbish", "nothing") else await next()

    def _pre(self, place: int) -> Callable[..., Any]:
        answers = {"allow": Allow(), "drop": Allow(), "ask": Ask("planned"), "deny": Deny("planned")}

        async def planned(exec: Any, next: Any) -> Any:
            word = _word(exec, "pre", place)
            if word == "drop":
                next()
            if word in answers:
                return answers[word]
            if word == "override":
                await next()
                return Allow()
            if word == "fail at first" and (exec.token, place) not in self._failed:
                self._failed.add((exec.token, place))
                raise RuntimeError("planned")
            return await self._common(word, exec, next, Allow())

        return _sync_or_async(planned, "pre", place)

    def _wrap(self, place: int) -> Callable[..., Any]:
        own = ToolExecutionSuccess(value="own", content=[], additional_contexts=[message("own")])

        async def planned(exec: Any, next: Any) -> Any:
            word = _word(exec, "wrap", place)
            if word.startswith("own"):
                return _own(word, own)
            if word.endswith("signal"):
                exec.signal = _signal(word)
            if word == "background":
                assert self._background is not None
                await self._background.start(_in_background, next)
                return own
            answer = await self._common(word, exec, next, own)
            if word == "raise after":
                raise RuntimeError("planned")
            return answer

        return _sync_or_async(planned, "wrap", place)

    def _post(self, place: int) -> Callable[..., Any]:
        answers = {
            "accept": Accept(additional_contexts=[message("post")]),
            "drop": Accept(),
            "content": Accept(content=text("content")),
            "value": Accept(value="value"),
            "bad content": Accept(content="no blocks"),  # type: ignore[arg-type]
            "bad value": Accept(value=5),
            "both": Accept(content=text("content"), value="value"),
            "block": Block("planned", [message("block")]),
        }

        async def planned(exec: Any, result: Any, next: Any) -> Any:
            word = _word(exec, "post", place)
            if word == "drop":
                next()
            return answers[word] if word in answers else await self._common(word, exec, next, Accept())

        async def listener(exec: Any, result: Any, next: Any) -> Any:
            return await planned(exec, result, next)

        return listener

    def _guard(self, place: int) -> Callable[[Any], Any]:
        def guard(exec: Any) -> Any:
            word = _word(exec, "guards", place, "none")
            if word == "raise":
                raise RuntimeError("planned")
            if word == "exit":
                raise SystemExit(3)
            if word == "abort":
                self._abort(exec)
            return {"deny": "planned", "deny silently": "", "rubbish": True}.get(word)

        return guard

    async def _ask(self, request: Any) -> Any:
        answer = request.exec.arguments["approval"]
        if answer == "raise":
            raise RuntimeError("planned")
        if answer == "abort":
            self._abort(request.exec)
        if answer == "cancel":
            await self._cancel(request.exec)
        return "cancelled" if answer in ("abort", "cancel") else answer

    async def _body(self, args: Any, exec: Any) -> Any:
        self.started[exec.call_id] = self.started.get(exec.call_id, 0) + 1
        exec.defer_context(message("body"))
        try:
            return await self._do(args["body"], exec)
        finally:
            self.ended[exec.call_id] = self.ended.get(exec.call_id, 0) + 1

    async def _do(self, word: str, exec: Any) -> Any:
        errors: dict[str, BaseException] = {
            "raise": RuntimeError("planned"),
            "raise coded": HarnessError("planned", code="PLANNED"),
            "raise group": ExceptionGroup("planned", [RuntimeError("planned")]),
            "exit": SystemExit(3),
        }
        if word in errors:
            raise errors[word]
        if word.startswith("abort"):
            self._abort(exec)
        if word == "wait":
            await trio.lowlevel.checkpoint()
        if word == "abort and wait":
            await trio.sleep_forever()
        if word == "abort and clean up badly":
            try:
                await trio.sleep_forever()
            finally:
                raise RuntimeError("cleanup")
        if word == "cancel":
            await self._cancel(exec)
        if word == "nested":
            await self.rec.call(
                "inner",
                {},
                call_id=f"{exec.call_id}:inner",
                parent=exec.token,
                root_call_id=exec.root_call_id,
                signal=exec.signal,
                agent=exec.agent,
            )
        return {"bad value": 5, "no json": object()}.get(word, "ok")

    def _threaded(self, args: Any, exec: Any) -> str:
        self.started[exec.call_id] = self.started.get(exec.call_id, 0) + 1
        try:
            if args["body"] == "thread raises":
                raise RuntimeError("planned")
            return "ok"
        finally:
            self.ended[exec.call_id] = self.ended.get(exec.call_id, 0) + 1


def _parallel(args: Any) -> bool:
    return bool(args["parallel"])


async def _soften(next: Any, milder: Any) -> Any:
    try:
        return await next()
    except Exception:
        return milder


async def _in_background(next: Any, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
    """Hear ``next()`` in a task of its own, which has called it before the listener goes on."""
    heard = next()
    task_status.started()
    with contextlib.suppress(Exception, SystemExit):  # whatever became of it is the call's to report
        await heard


def _own(word: str, own: ToolExecutionSuccess) -> Any:
    """What a wrapper makes up itself."""
    if word == "own failure":
        return ToolExecutionFailure(error=ToolFailure("planned"), content=text("planned"), meta={"m": [1]})
    if word == "own bad context":
        broken = ContextMessage(content=[{"type": "text", "text": b"bytes"}], source="own")
        return evolve(own, additional_contexts=[broken])
    return evolve(own, value=5) if word == "own bad" else own


def _signal(word: str) -> Any:
    controller = AbortController()
    if word == "expired signal":
        controller.abort()
    return None if word == "no signal" else controller.signal


def _word(exec: Any, stage: str, place: int, default: str = "pass") -> str:
    """What the plan says for this place; nested calls follow no plan."""
    words = exec.arguments.get(stage, ())
    word: str = words[place] if place < len(words) else default
    return word


def _sync_or_async(planned: Callable[..., Any], stage: str, place: int) -> Callable[..., Any]:
    """The last place is a sync listener that hands its work on, the others are async."""
    if place < PLACES - 1:
        return planned

    def listener(exec: Any, next: Any) -> Any:
        return next() if _word(exec, stage, place) == "pass" else planned(exec, next)

    return listener
