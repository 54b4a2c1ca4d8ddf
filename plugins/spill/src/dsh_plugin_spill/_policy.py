"""The plugin: its config, and where it looks at content."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import trio
from attrs import evolve, field, frozen
from attrs.validators import ge, gt
from dsh_hookspecs import (
    UNSET,
    Accept,
    Block,
    CodeDispatchLog,
    Content,
    Context,
    PostToolDecision,
    ToolExecution,
    ToolExecutionResult,
)

from dsh_plugin_spill._spiller import SMALLEST_SHARE, Spiller
from dsh_plugin_spill._store import Store
from dsh_plugin_spill._tool import read_tool

NextPolicy: TypeAlias = Callable[[], Awaitable[PostToolDecision]]
NextContent: TypeAlias = Callable[[], Awaitable[Content]]

name: Final = "spill"
inject: Final = {"tools": True, "redact": False}


@frozen(kw_only=True)
class Config:
    """Where large results go, and what counts as large; sizes are in bytes of UTF-8.

    The texts of one result share ``budget``; any other block has ``block_budget`` to itself. ``folder`` holds at most
    ``store_limit``. ``patience`` is how many seconds storing may take. ``tool`` registers ``spill_read``.
    """

    folder: Path
    budget: int = field(default=16_384, validator=ge(2 * SMALLEST_SHARE))
    block_budget: int = field(default=1_000_000, validator=ge(0))
    store_limit: int = field(default=1_000_000_000, validator=gt(0))
    patience: float = field(default=5.0, validator=gt(0))
    tool: bool = False


async def apply(ctx: Context, config: Config) -> None:
    """Open the folder, and look at every content on its way to the model or the log."""
    store = await trio.to_thread.run_sync(Store, config.folder, config.store_limit)
    ctx.effect(lambda: lambda: trio.to_thread.run_sync(store.close))
    redactor = ctx.get("redact")
    spiller = Spiller(
        store=store,
        budget=config.budget,
        block_budget=config.block_budget,
        patience=config.patience,
        readable=config.tool,
        mask=_as_it_is if redactor is None else redactor.text,
    )

    async def review(exec: ToolExecution, result: ToolExecutionResult, next: NextPolicy) -> PostToolDecision:
        decision = await next()
        if (
            isinstance(decision, Accept)
            and decision.content is None
            and decision.value is UNSET
            and spiller.fits(result.content)
        ):
            return decision
        return await _reviewed(spiller, exec, result, decision)

    async def log(dispatch: CodeDispatchLog, next: NextContent) -> Content:
        return await spiller.content(await next(), dispatch.sub_call_id)

    ctx.on("tools/post-execute", review, prepend=True)
    ctx.on("tools/code-dispatch-log", log, prepend=True)
    if config.tool:
        ctx.tools.register(read_tool(store, config.budget))


async def _reviewed(
    spiller: Spiller, exec: ToolExecution, result: ToolExecutionResult, decision: PostToolDecision
) -> PostToolDecision:
    """The decision with its content within the budget; the very same decision if it is."""
    if isinstance(decision, Block):
        feedback: Any = decision.feedback
        cut = spiller.feedback if isinstance(feedback, str) else spiller.content
        bounded: Any = await cut(feedback, exec.call_id)
        return decision if bounded is feedback else evolve(decision, feedback=bounded)
    if decision.value is not UNSET:
        return decision  # Its content is rendered later, where no policy sees it.
    shown = result.content if decision.content is None else decision.content
    content = await spiller.content(shown, exec.call_id)
    return decision if content is shown else evolve(decision, content=content)


def _as_it_is(text: str) -> str:
    return text
