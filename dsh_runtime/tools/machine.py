"""What all calls of one host share, and the pipeline that each scope's calls go through.

A pipeline is an immutable snapshot: the listeners of every stage, the guards, the presentation mode, and a memo of
tools. It is stamped with the ledger's version and built anew when that has moved on; a call keeps the one it entered
with.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen
from dsh_hookspecs import ExecutionToken, ToolExecutionFailure

from dsh_runtime.core.errors import ScopeClosedError
from dsh_runtime.core.events import Listener
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.kernel import Kernel
from dsh_runtime.core.lifecycle import State
from dsh_runtime.tools.failures import failure
from dsh_runtime.tools.registry import Guard, Journal, PresentationMode, RegisteredTool, Resolver
from dsh_runtime.tools.threads import Threads

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call

_log = logging.getLogger("dsh.tools")
#: The version of a pipeline that is of no single version of the ledger: visibility and guards are read afresh.
MIXED = -1
_YIELD_EVERY = 0.0005


@frozen
class ToolSettings:
    """How the pipeline of one host behaves. Times are in seconds."""

    max_depth: int = 512
    policy_timeout: float | None = None
    threads: int = 40
    drain_timeout: float = 30.0
    reload_wait: float = 10.0
    presentation: PresentationMode = "native"


class Pipeline:
    """The stages of one scope's calls, as they are at one version of the ledger."""

    __slots__ = (
        "_keeper",
        "_memo",
        "_resolver",
        "chain",
        "execute",
        "guards",
        "journal",
        "mode",
        "post",
        "pre",
        "progress",
        "result",
        "version",
    )

    def __init__(self, machine: Machine, chain: tuple[Hashable, ...]) -> None:
        heard: Callable[[str], tuple[Listener, ...]] = lambda event: machine.kernel.events.listeners(event, chain)  # noqa: E731
        self.version = machine.kernel.ledger.version
        self.chain = chain
        record = machine.resolver.journal()
        self.journal: Journal | None = record.value if record is not None else None
        self._keeper = record.fiber if record is not None else None
        self.pre = heard("tools/pre-execute")
        self.execute = heard("tools/execute")
        self.post = heard("tools/post-execute")
        self.result = heard("tools/result")
        self.progress = heard("tools/progress")
        self.guards = machine.resolver.guards(chain)
        self.mode = machine.resolver.mode(chain)
        self._resolver = machine.resolver
        self._memo: dict[str, RegisteredTool | None] = {}

    def find(self, name: str) -> RegisteredTool | None:
        """The tool of a name as this scope sees it."""
        try:
            return self._memo[name]
        except KeyError:
            found = self._resolver.find(name, self.chain)
            if found is not None:
                self._memo[name] = found
            return found

    def with_those_of(self, outer: Pipeline) -> Pipeline:
        """This pipeline for a sub-call: policy that the call around it entered with, and that unloads, comes first.

        Not so policy that a newer version has replaced: that one is heard instead. A journal that unloads still has to
        take the sub-call in, or refuse it.
        """
        both: Any = object.__new__(Pipeline)
        for name in Pipeline.__slots__:
            setattr(both, name, getattr(self, name))
        for stage in ("pre", "execute", "post", "result", "guards"):
            leaving = tuple(item for item in getattr(outer, stage) if is_leaving(item.fiber))
            setattr(both, stage, (*leaving, *(item for item in getattr(self, stage) if item not in leaving)))
        if self.journal is None:
            both.journal, both._keeper = outer.journal, outer._keeper
        both.version = MIXED
        return both  # type: ignore[no-any-return]

    def uses(self, fiber: Fiber) -> bool:
        """Whether anything in the stages belongs to ``fiber``."""
        if fiber is self._keeper:
            return True
        listeners = (*self.pre, *self.execute, *self.post, *self.result, *self.progress)
        owners = (*(listener.fiber for listener in listeners), *(guard.fiber for guard in self.guards))
        return any(owner is fiber for owner in owners)


def is_leaving(fiber: Fiber) -> bool:
    """Whether a plugin unloads without another version in its place."""
    return fiber.state is not State.ACTIVE and not fiber.replaced


class Machine:
    """The shared state of a host's calls."""

    def __init__(self, kernel: Kernel, settings: ToolSettings) -> None:
        self.kernel = kernel
        self.ledger = kernel.ledger
        self.settings = settings
        self.resolver = Resolver(kernel.ledger, settings.presentation)
        self.threads = Threads(settings.threads)
        self.calls: dict[ExecutionToken | None, Call] = {}
        self.clock: object = trio.lowlevel.current_clock()
        self._token = trio.lowlevel.current_trio_token()
        self._thread = threading.get_ident()
        self.pipelines: dict[Hashable, Pipeline] = {}
        self.yield_at = 0.0

    def pipeline(self, agent: Hashable | None) -> Pipeline:
        """The pipeline of an agent's calls. :class:`ScopeClosedError` if its scope has been disposed."""
        pipeline = self.pipelines.get(agent)
        if pipeline is not None and pipeline.version == self.ledger.version:
            return pipeline
        return self._build(agent)

    def nested(self, pipeline: Pipeline, parent: ExecutionToken) -> Pipeline:
        """The pipeline of a sub-call: no policy that the call around it is subject to may be gone for it."""
        outer = self.calls.get(parent)
        if outer is None or outer.pipeline.version == self.ledger.version:
            return pipeline
        return pipeline.with_those_of(outer.pipeline)

    def forget_scope(self, key: Hashable) -> None:
        """A scope has been disposed."""
        self.pipelines.pop(key, None)

    async def let_others_run(self) -> None:
        """A full checkpoint, due every half millisecond (a checkpoint each call would cost a third of it)."""
        await trio.lowlevel.checkpoint()
        self.others_have_run()

    def others_have_run(self) -> None:
        """The loop has just been round: whoever says so begins a task, or has been woken."""
        self.yield_at = time.perf_counter() + _YIELD_EVERY

    def guards(self, pipeline: Pipeline) -> tuple[Guard, ...]:
        """The guards of now and those that the call entered with: they can only take away."""
        fresh = self.resolver.guards(self.kernel.scopes.chain(pipeline.chain[0] if pipeline.chain else None))
        return (*fresh, *(guard for guard in pipeline.guards if guard not in fresh))

    def visible_now(self, pipeline: Pipeline, name: str) -> bool:
        """Whether a tool of this name is visible at this moment to the scope of ``pipeline``."""
        if pipeline.version == self.ledger.version:
            return True
        try:
            chain = self.kernel.scopes.chain(pipeline.chain[0] if pipeline.chain else None)
        except ScopeClosedError:
            return False
        return self.resolver.find(name, chain) is not None

    def approval(self) -> Any:
        """The approval service, or ``None``."""
        return self.kernel.root.ctx.get("approval")

    def gate_closed(self) -> ToolExecutionFailure:
        """The result of a call that comes while a plugin that must be active is not."""
        fiber = self.kernel.closed_by
        assert fiber is not None
        if self.kernel.held is not None:
            text = f"this host takes no calls while plugin {fiber.id!r}, which has to stop first, is reloaded"
            return failure(text, code="GATE_CLOSED", name="GateClosed", plugin=fiber.id)
        why = f"plugin {fiber.id!r} is {fiber.state}"
        if fiber.error is not None:
            why += f" ({type(fiber.error).__name__}: {fiber.error})"
        elif fiber.missing:
            why += f" (it waits for the service {', '.join(map(repr, fiber.missing))})"
        return failure(f"this host takes no calls while {why}", code="GATE_CLOSED", name="GateClosed", plugin=fiber.id)

    def canceller(self, scope: trio.CancelScope) -> Callable[[], object]:
        """A function that cancels ``scope``, from whatever thread."""
        return lambda: self.in_loop(scope.cancel)

    def in_loop(self, fn: Callable[..., object], *args: Any) -> None:
        """Run ``fn`` in the host's loop: at once from inside, soon from another thread."""
        if threading.get_ident() == self._thread:
            fn(*args)
            return
        with contextlib.suppress(trio.RunFinishedError):  # Nobody is left to hear of it.
            self._token.run_sync_soon(fn, *args)

    async def drain(self, fiber: Fiber) -> None:
        """Wait until no call under way uses ``fiber``; past the deadline abort them, and wait once more."""
        self._forget_old_pipelines()
        using = [call for call in self.calls.values() if call.tool_fiber is fiber or call.pipeline.uses(fiber)]
        with trio.move_on_after(self.settings.drain_timeout):
            await self._rest(using)
            return
        for call in using:
            call.abort(f"plugin {fiber.id!r} unloads")
        with trio.move_on_after(self.settings.drain_timeout):
            await self._rest(using)
            return
        _log.error("plugin %r unloads although %d calls have not come to rest", fiber.id, len(using))

    def _forget_old_pipelines(self) -> None:
        """Keep no plugin alive for a scope that makes no call any more."""
        for agent in [agent for agent, pipeline in self.pipelines.items() if pipeline.version != self.ledger.version]:
            del self.pipelines[agent]

    async def _rest(self, calls: Sequence[Call]) -> None:
        for call in calls:
            await call.rest()

    def _build(self, agent: Hashable | None) -> Pipeline:
        chain = self.kernel.scopes.chain(agent)
        if agent is not None and not self.kernel.scopes.is_open(agent):
            # Nothing is registered for a key that is no scope: the host's own pipeline serves it.
            return self.pipeline(None)
        pipeline = self.pipelines[agent] = Pipeline(self, chain)
        return pipeline
