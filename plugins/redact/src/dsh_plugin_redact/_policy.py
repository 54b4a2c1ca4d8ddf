"""What the model gets to see: content, feedback and contexts, masked once every other policy has spoken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from attrs import evolve
from dsh_hookspecs import (
    UNSET,
    Accept,
    Block,
    Content,
    ContentBlock,
    ContextMessage,
    PostToolDecision,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolExecutionSuccess,
    Unset,
)

from dsh_plugin_redact._redactor import Redactor

NextPolicy: TypeAlias = Callable[[], Awaitable[PostToolDecision]]

#: Blocks whose ``data`` is no text.
_BINARY: Final = ("image", "audio")
#: Looking through so many characters takes a few milliseconds.
_LARGE: Final = 100_000


class ModelPolicy:
    """Masks what a call tells the model; with ``value`` also the canonical value that programs get."""

    def __init__(self, redactor: Redactor, *, value: bool) -> None:
        self._redactor = redactor
        self._value = value

    async def review(self, result: ToolExecutionResult, next: NextPolicy) -> PostToolDecision:
        """The answer of the policies behind, masked; the very same answer if there is no secret."""
        decision = await next()
        if not _is_large(_shown(decision, result)):
            return self._reviewed(decision, result)
        import trio

        # That takes a while, and the event loop goes on meanwhile.
        return await trio.to_thread.run_sync(self._reviewed, decision, result, abandon_on_cancel=True)

    def _reviewed(self, decision: PostToolDecision, result: ToolExecutionResult) -> PostToolDecision:
        contexts = self._contexts(decision.additional_contexts)
        if isinstance(decision, Block):
            feedback = self._feedback(decision.feedback)
            same = feedback is decision.feedback and contexts is decision.additional_contexts
            return decision if same else Block(feedback, contexts)
        accepted = self._retold(self._accepted(decision, result), result)
        return accepted if contexts is accepted.additional_contexts else evolve(accepted, additional_contexts=contexts)

    def _retold(self, decision: Accept, result: ToolExecutionResult) -> Accept:
        """With what the tool deferred, and what a failure says of itself, masked."""
        deferred = decision.deferred_contexts
        if deferred is None:
            deferred = result.additional_contexts
        masked = self._contexts(deferred)
        if masked is not deferred:
            decision = evolve(decision, deferred_contexts=masked)
        if not isinstance(result, ToolExecutionFailure):
            return decision
        said = decision.error_message if decision.error_message is not None else result.error.message
        message = self._redactor.text(said)
        return decision if message is said else evolve(decision, error_message=message)

    def _accepted(self, decision: Accept, result: ToolExecutionResult) -> Accept:
        if not isinstance(decision.value, Unset):
            # The content is rendered from this value, so it is masked in any case.
            value = self._redactor.value(decision.value)
            return decision if value is decision.value else evolve(decision, value=value)
        if self._value and decision.content is None and isinstance(result, ToolExecutionSuccess):
            value = self._redactor.value(result.value)
            if value is not result.value:
                return evolve(decision, value=value)
        shown = _shown(decision, result)
        content = self._content(shown)
        return decision if content is shown else evolve(decision, content=content, value=UNSET)

    def _feedback(self, feedback: str | Content) -> str | Content:
        return self._redactor.text(feedback) if isinstance(feedback, str) else self._content(feedback)

    def _content(self, content: Content) -> Content:
        masked = [self._block(block) for block in content]
        return content if all(a is b for a, b in zip(masked, content, strict=True)) else masked

    def _block(self, block: ContentBlock) -> ContentBlock:
        if block.get("type") not in _BINARY or "data" not in block:
            return self._redactor.value(block)  # type: ignore[return-value]
        rest = {key: item for key, item in block.items() if key != "data"}
        masked = self._redactor.value(rest)
        return block if masked is rest else {**masked, "data": block["data"]}  # type: ignore[dict-item]

    def _contexts(self, contexts: Sequence[ContextMessage]) -> Sequence[ContextMessage]:
        masked = tuple(self._context(context) for context in contexts)
        return contexts if all(a is b for a, b in zip(masked, contexts, strict=True)) else masked

    def _context(self, context: ContextMessage) -> ContextMessage:
        content, meta = self._content(context.content), self._redactor.value(context.meta)
        source = self._redactor.text(context.source)
        if content is context.content and meta is context.meta and source is context.source:
            return context
        return ContextMessage(content, source, meta)


def _shown(decision: PostToolDecision, result: ToolExecutionResult) -> Content:
    """The content that stands."""
    if isinstance(decision, Block):
        feedback = decision.feedback
        return [{"type": "text", "text": feedback}] if isinstance(feedback, str) else feedback
    return result.content if decision.content is None else decision.content


def _is_large(content: Content) -> bool:
    return sum(len(text) for block in content if isinstance(text := block.get("text"), str)) >= _LARGE
