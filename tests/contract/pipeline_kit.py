"""What the tests of the pipeline share: tools and listeners that record, calls, and checks of results."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import trio
from dsh_hookspecs import ApprovalRequest

from dsh_runtime import (
    AbortController,
    AbortSignal,
    ContextMessage,
    ToolDefinition,
    ToolExecutionFailure,
    ToolExecutionInput,
    ToolExecutionSuccess,
    ToolOutput,
)

Result = ToolExecutionSuccess | ToolExecutionFailure
Undo = Callable[[], None]

ANY_JSON: dict[str, Any] = {}
STRING: dict[str, Any] = {"type": "string"}


def policy_timeout(seconds: float) -> dict[str, Any]:
    """The host's config with a deadline for policy."""
    return {"host": {"policy_timeout": seconds}}


class Plugin:
    """A plugin made of a name and what it does when it applies."""

    def __init__(self, name: str, apply: Callable[[Any], Any], inject: Iterable[str] = ("tools",)) -> None:
        self.name = name
        self.inject = list(inject)
        self._apply = apply

    def apply(self, ctx: Any) -> None:
        self._apply(ctx)


class Clockwork:
    """A switch between a test and a body or listener: ``reached`` by the one, ``go`` by the other."""

    def __init__(self) -> None:
        self.reached = trio.Event()
        self.go = trio.Event()

    async def stop(self) -> None:
        """Say that the place is reached and wait there."""
        self.reached.set()
        await self.go.wait()


class Approval:
    """An approval service that answers the same to everyone, or does what it is given to do."""

    def __init__(self, outcome: Any = "allowed-once", *, then: Callable[[ApprovalRequest], Any] | None = None) -> None:
        self.outcome = outcome
        self.requests: list[ApprovalRequest] = []
        self._then = then

    async def request(self, request: ApprovalRequest) -> Any:
        self.requests.append(request)
        if self._then is None:
            return self.outcome
        answer = self._then(request)
        return await answer if inspect.isawaitable(answer) else answer


class Recorder:
    """Registers tools, listeners and guards that write down the stages they see, and makes calls."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx
        self.stages: list[str] = []
        self.results: list[Result] = []
        self.executions: list[Any] = []
        self._calls = 0

    def log(self, stage: str) -> None:
        self.stages.append(stage)

    def count(self, prefix: str) -> int:
        """How many stages begin with ``prefix``."""
        return sum(stage.startswith(prefix) for stage in self.stages)

    @property
    def body_ran(self) -> bool:
        return self.count("body:") > 0

    # Tools

    def tool(
        self,
        name: str = "echo",
        body: Callable[..., Any] | None = None,
        *,
        ctx: Any = None,
        schema: Any = STRING,
        render: Callable[..., Any] | None = None,
        meta: Callable[..., Any] | None = None,
        finalize: Callable[..., Any] | None = None,
        **more: Any,
    ) -> Undo:
        """Register :meth:`definition`."""
        definition = self.definition(name, body, schema=schema, render=render, meta=meta, finalize=finalize, **more)
        undo: Undo = (ctx or self.ctx).tools.register(definition)
        return undo

    def definition(
        self,
        name: str = "echo",
        body: Callable[..., Any] | None = None,
        *,
        schema: Any = STRING,
        render: Callable[..., Any] | None = None,
        meta: Callable[..., Any] | None = None,
        finalize: Callable[..., Any] | None = None,
        finalized: bool = True,
        parameters: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> ToolDefinition:
        """A raw tool that writes down its body, rendering, meta and (unless ``finalized`` is false) finalizer."""

        async def execute(args: Any, exec: Any) -> Any:
            self.log(f"body:{name}")
            if body is None:
                return f"ran:{name}"
            value = body(args, exec)
            return await value if inspect.isawaitable(value) else value

        def logged_render(args: Any, value: Any) -> Any:
            self.log("render")
            if render is not None:
                return render(args, value)
            return text(value if isinstance(value, str) else json.dumps(value))

        def logged_meta(args: Any, value: Any) -> Any:
            self.log("meta")
            assert meta is not None
            return meta(args, value)

        def logged_finalize(exec: Any, result: Result) -> Any:
            self.log(f"finalize(isError={str(result.is_error).lower()},code={code(result) or 'null'})")
            return None if finalize is None else finalize(exec, result)

        return ToolDefinition(
            name=name,
            description=f"The tool {name}.",
            parameters=dict(parameters) if parameters is not None else {"type": "object"},
            output=ToolOutput(
                schema=schema, render=logged_render, presentation_meta=None if meta is None else logged_meta
            ),
            execute=execute,
            finalize_content=logged_finalize if finalized else None,
            **more,
        )

    # Listeners

    def pre(
        self, label: str, then: Callable[..., Any] | None = None, *, ctx: Any = None, prepend: bool = False
    ) -> Undo:
        """Listen to ``tools/pre-execute``: pass on, or do what ``then(exec, next)`` does."""
        return self._listen("pre-execute", label, then, ctx, prepend)

    def around(
        self, label: str, then: Callable[..., Any] | None = None, *, ctx: Any = None, prepend: bool = False
    ) -> Undo:
        """Listen to ``tools/execute``: pass on, or do what ``then(exec, next)`` does."""
        return self._listen("execute", label, then, ctx, prepend)

    def post(
        self, label: str, then: Callable[..., Any] | None = None, *, ctx: Any = None, prepend: bool = False
    ) -> Undo:
        """Listen to ``tools/post-execute``: pass on, or do what ``then(exec, result, next)`` does."""
        if then is not None and inspect.iscoroutinefunction(then):

            async def listener(exec: Any, result: Result, next: Any) -> Any:
                self.log(f"post-execute:{label}")
                return await then(exec, result, next)

        else:

            def listener(exec: Any, result: Result, next: Any) -> Any:  # type: ignore[misc]
                self.log(f"post-execute:{label}")
                return next() if then is None else then(exec, result, next)

        undo: Undo = (ctx or self.ctx).on("tools/post-execute", listener, prepend=prepend)
        return undo

    def observe(
        self, label: str, then: Callable[..., Any] | None = None, *, ctx: Any = None, prepend: bool = False
    ) -> Undo:
        """Listen to ``tools/result`` and keep what is seen."""

        def listener(exec: Any, result: Result) -> None:
            self.log(f"result:{label}")
            self.executions.append(exec)
            self.results.append(result)
            if then is not None:
                then(exec, result)

        undo: Undo = (ctx or self.ctx).on("tools/result", listener, prepend=prepend)
        return undo

    def guard(self, label: str, answer: Any = None, *, ctx: Any = None) -> Undo:
        """A guard that gives ``answer``, or what ``answer(exec)`` gives."""

        def guard(exec: Any) -> Any:
            self.log(f"guard:{label}")
            return answer(exec) if callable(answer) else answer

        undo: Undo = (ctx or self.ctx).tools.guard(guard)
        return undo

    def passers(self) -> None:
        """One listener that passes on, on each stage: P, X, Q and the observer R."""
        self.pre("P")
        self.around("X")
        self.post("Q")
        self.observe("R")

    def _listen(self, stage: str, label: str, then: Callable[..., Any] | None, ctx: Any, prepend: bool) -> Undo:
        if then is not None and inspect.iscoroutinefunction(then):

            async def listener(exec: Any, next: Any) -> Any:
                self.log(f"{stage}:{label}")
                return await then(exec, next)

        else:

            def listener(exec: Any, next: Any) -> Any:  # type: ignore[misc]
                self.log(f"{stage}:{label}")
                return next() if then is None else then(exec, next)

        undo: Undo = (ctx or self.ctx).on(f"tools/{stage}", listener, prepend=prepend)
        return undo

    # Calls

    def input(
        self, name: str = "echo", arguments: Any = None, *, signal: AbortSignal | None = None, **more: Any
    ) -> ToolExecutionInput:
        """A call with an id of its own and, unless given, no arguments and a signal that nobody aborts."""
        self._calls += 1
        return ToolExecutionInput(
            call_id=more.pop("call_id", f"c{self._calls}"),
            name=name,
            arguments={} if arguments is None else arguments,
            signal=signal if signal is not None else AbortController().signal,
            **more,
        )

    async def call(self, name: str = "echo", arguments: Any = None, **more: Any) -> Result:
        """Run one call through the pipeline."""
        result: Result = await self.ctx.tools.execute(self.input(name, arguments, **more))
        return result


def text(words: str) -> list[dict[str, Any]]:
    """Content of one text block."""
    return [{"type": "text", "text": words}]


def message(words: str) -> ContextMessage:
    """A context message that says, and is from, ``words``."""
    return ContextMessage(content=text(words), source=words)


def sources(result: Result) -> list[str]:
    """Who the context messages of a result come from, in order."""
    return [context.source for context in result.additional_contexts]


def code(result: Result) -> str | None:
    """The code of a failure, ``None`` for a success and for a failure without one."""
    return result.error.info.code if result.is_error and result.error.info is not None else None


def plugin(result: Result) -> str | None:
    """The plugin that a failure is put down to."""
    assert result.is_error, result
    return result.error.info.plugin if result.error.info is not None else None


def success(result: Result) -> ToolExecutionSuccess:
    """The result, which has to be a success."""
    assert isinstance(result, ToolExecutionSuccess), result
    return result


def failure(result: Result, expected: str | None = None) -> ToolExecutionFailure:
    """The result, which has to be a failure, with this code (``None``: without a code)."""
    assert isinstance(result, ToolExecutionFailure), result
    assert code(result) == expected, result
    return result


def raising(error: BaseException) -> Callable[..., Any]:
    """A function of any arguments that raises ``error``."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fail


def callbacks_of(signal: AbortSignal) -> int:
    """How many callbacks a signal still holds."""
    return len(signal._callbacks or ())


def assert_lossless_and_frozen(result: Result) -> None:
    """Every part of a result is JSON that reads back as itself, and nothing of it can be changed."""
    parts = [result.content, result.meta, *(c.content for c in result.additional_contexts)]
    parts += [c.meta for c in result.additional_contexts]
    if not result.is_error:
        parts.append(result.value)
    for part in parts:
        assert json.loads(json.dumps(part)) == part
        _assert_frozen(part)
    for holder in (result, *result.additional_contexts, *([result.error] if result.is_error else [])):
        _refuses(lambda holder=holder: setattr(holder, attrs.fields(type(holder))[0].name, None))
    if not isinstance(result.additional_contexts, tuple):
        _refuses(lambda: result.additional_contexts.append(None))


def _assert_frozen(value: Any) -> None:
    if isinstance(value, dict):
        _refuses(lambda: value.update(probe=1))
        _refuses(lambda: value.__setitem__("probe", 1))
        for member in value.values():
            _assert_frozen(member)
    elif isinstance(value, (list, tuple)):
        if not isinstance(value, tuple):
            _refuses(lambda: value.append(1))
        for member in value:
            _assert_frozen(member)


def _refuses(change: Callable[[], Any]) -> None:
    try:
        change()
    except (TypeError, AttributeError):
        return
    raise AssertionError("a part of a result could be changed")


def unattributed(result: Result) -> str | None:
    """The code of a failure that no error of a plugin's own coded: none, or that a listener failed."""
    found = code(result)
    assert found in (None, "LISTENER_FAILED"), result
    return found


def plain(execute: Callable[..., Any], schema: Any = ANY_JSON, *, name: str = "echo", **more: Any) -> ToolDefinition:
    """A raw tool around a body as it stands, sync or async."""
    return ToolDefinition(
        name=name,
        description="Plain.",
        parameters={"type": "object"},
        output=ToolOutput(schema=schema),
        execute=execute,
        **more,
    )
