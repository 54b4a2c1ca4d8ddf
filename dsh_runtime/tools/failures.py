"""Failures: how an exception or a decision becomes an error result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
from dsh_hookspecs import ContextMessage, HarnessError, ToolErrorInfo, ToolExecutionFailure, ToolFailure

from dsh_runtime.values.frozen import FrozenDict, FrozenList, OpenDict, OpenList

#: What the code of a tool, listener or service may raise without ending the host.
ORDINARY = (Exception, SystemExit)
#: What nobody may contain: an interrupt, a caller's cancellation, the end of a frame.
OUTER = (KeyboardInterrupt, trio.Cancelled, GeneratorExit)


class ListenerFailed(Exception):  # noqa: N818 - control flow
    """Policy itself failed: a listener, guard or approval service raised, answered rubbish or took too long."""

    def __init__(self, plugin: str | None, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.cause = cause

    @property
    def bug(self) -> BaseException | None:
        """The cause, if it is a bug and not an error raised on purpose: its traceback is worth a log."""
        return None if isinstance(self.cause, HarnessError) else self.cause


class Raised:
    """What a threaded body raised; carried as a value, since a coroutine cannot let every exception through."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


def clean(text: str) -> str:
    """A text that JSON can carry: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def text_content(text: str) -> FrozenList:
    """One text block, frozen."""
    block: Any = OpenDict()
    block["type"] = "text"
    block["text"] = text
    block.__class__ = FrozenDict
    content: Any = OpenList((block,))
    content.__class__ = FrozenList
    return content  # type: ignore[no-any-return]


def failure(
    message: str,
    *,
    code: str | None,
    name: str,
    plugin: str | None = None,
    content: Any = None,
    contexts: Sequence[ContextMessage] = (),
) -> ToolExecutionFailure:
    """An error result; its content is ``Error: <message>`` unless ``content`` says otherwise."""
    message = clean(message)
    return ToolExecutionFailure(
        error=ToolFailure(message, ToolErrorInfo(name, code, plugin)),
        content=text_content(f"Error: {message}") if content is None else content,
        additional_contexts=tuple(contexts),
    )


def failure_of(
    error: BaseException,
    *,
    plugin: str | None,
    default_code: str | None = None,
    contexts: Sequence[ContextMessage] = (),
    content: Any = None,
) -> ToolExecutionFailure:
    """The error result of an exception: its message, its class, and its code if it is a :class:`HarnessError`."""
    error = sole(error)
    code = error.code if isinstance(error, HarnessError) else None
    return failure(
        message_of(error),
        code=code if isinstance(code, str) else default_code,
        name=type(error).__name__,
        plugin=plugin,
        content=content,
        contexts=contexts,
    )


def failure_of_listener(failed: ListenerFailed) -> ToolExecutionFailure:
    """The error result of a policy that failed."""
    cause = sole(failed.cause) if failed.cause is not None else None
    code = cause.code if isinstance(cause, HarnessError) else None
    return failure(
        str(failed),
        code=code if isinstance(code, str) else "LISTENER_FAILED",
        name=type(cause if cause is not None else failed).__name__,
        plugin=failed.plugin,
    )


def sole(error: BaseException) -> BaseException:
    """The member of an exception group that has only one; any other exception is itself."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def shown(value: object) -> str:
    """How a value reads in a message, whatever its ``__repr__`` does."""
    try:
        return repr(value)[:200]
    except ORDINARY:
        return f"<{type(value).__name__}>"


def message_of(error: BaseException) -> str:
    """What an exception says, or its class where it says nothing."""
    try:
        text = str(error)
    except ORDINARY:
        text = ""
    return text or type(error).__name__


def outward(error: BaseException) -> BaseException | None:
    """What of an error may not be contained, interrupts first: the error itself, a group's member, or nothing."""
    if not isinstance(error, BaseExceptionGroup):
        return error if isinstance(error, OUTER) else None
    for kind in OUTER:
        match, _ = error.split(kind)
        if match is not None:
            return _first(match)
    return None


def failing(error: BaseException) -> bool:
    """Whether an error holds anything that is a failure, beside what goes outward."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(OUTER)[1] is not None
    return not isinstance(error, OUTER)


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
