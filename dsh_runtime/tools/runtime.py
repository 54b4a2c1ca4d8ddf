"""The service ``tools``: what plugins and front doors call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, Literal

from dsh_hookspecs import ToolExecutionResult, ToolGuard

from dsh_runtime.core.context import Context
from dsh_runtime.core.events import emit, is_async
from dsh_runtime.core.services import Service
from dsh_runtime.tools.batch import Batch
from dsh_runtime.tools.call import Call
from dsh_runtime.tools.definition import RESERVED_NAMES, ToolDefinition, ToolExecutionInput
from dsh_runtime.tools.foresight import Foresight, foresee
from dsh_runtime.tools.machine import Machine, ToolSettings
from dsh_runtime.tools.registry import (
    GUARD,
    JOURNAL,
    MODE,
    MODES,
    RESTRICTION,
    TOOL,
    Guard,
    Journal,
    PresentationMode,
    RegisteredTool,
    Resolver,
    ToolRegistrationError,
    check_definition,
    make_restriction,
)
from dsh_runtime.values import snapshot_json, thaw

Undo = Callable[[], Any]


class ToolRuntime(Service):
    """Registry and pipeline. What is registered through a scope's context is that scope's own."""

    name = "tools"

    def __init__(self, settings: ToolSettings | None = None) -> None:
        self._settings = settings or ToolSettings()

    def start(self) -> None:
        """Connect the pipeline to the kernel."""
        kernel = self.ctx.fiber.kernel
        machine = self.machine = Machine(kernel, self._settings)
        self.ctx.effect(lambda: kernel.add_drainer(machine.drain))
        self.ctx.effect(lambda: kernel.watch_scopes(machine.forget_scope))
        self.ctx.effect(lambda: _announce(machine))

    # Registering.

    def register(self, definition: ToolDefinition) -> Undo:
        """Register a tool; give back the undo. A second tool of one name in one layer is refused."""
        check_definition(definition, self.ctx.fiber.id)
        return self.ctx.register(TOOL, RegisteredTool(definition, self.ctx.fiber), key=definition.name)

    def restrict(self, *, allow: Sequence[str] | None = None, deny: Sequence[str] | None = None) -> Undo:
        """Filter what the calling scope inherits; give back the undo. Several restrictions intersect."""
        key = self._scope_of("restrict")
        chain = self.ctx.fiber.house.scopes.chain(key)
        return self.ctx.register(RESTRICTION, make_restriction(self._resolver, self.ctx, chain, allow, deny))

    def guard(self, fn: ToolGuard) -> Undo:
        """Register a guard: sync ``fn(exec)`` gives a reason (deny) or ``None``; give back the undo."""
        if not callable(fn):
            who = f"plugin {self.ctx.fiber.id!r}"
            raise ToolRegistrationError(f"{who} gives {fn!r} as a guard; give a function fn(exec)")
        if is_async(fn):
            raise ToolRegistrationError(f"plugin {self.ctx.fiber.id!r} gives an async guard; guards are sync")
        return self.ctx.register(GUARD, Guard(fn, self.ctx.fiber.id, self.ctx.fiber))

    def present_as(self, mode: PresentationMode) -> Undo:
        """Present the calling scope's tools in ``mode``; once per scope; give back the undo."""
        self._scope_of("present_as")
        if mode not in MODES:
            who = f"plugin {self.ctx.fiber.id!r}"
            raise ToolRegistrationError(f"{who} presents as {mode!r}; give one of {', '.join(MODES)}")
        return self.ctx.register(MODE, mode, key=MODE)

    def keep_record(self, journal: Journal) -> Undo:
        """Install the journal that every call is put on record with, once per host; give back the undo."""
        if self.ctx.scope_key is not None:
            who = f"plugin {self.ctx.fiber.id!r}"
            raise ToolRegistrationError(f"{who} keeps a record for a scope; a record is the host's")
        return self.ctx.register(JOURNAL, journal, key=JOURNAL)

    # Looking.

    def get(self, name: str, scope: Hashable | None = None) -> ToolDefinition | None:
        """The definition that a scope sees under ``name``, or ``None``."""
        tool = self._find(name, scope)
        return tool.definition if tool is not None else None

    def owner(self, name: str, scope: Hashable | None = None) -> str | None:
        """The id of the plugin whose tool a scope sees under ``name``, or ``None``."""
        tool = self._find(name, scope)
        return tool.plugin if tool is not None else None

    def schemas(self, scope: Hashable | None = None) -> list[dict[str, Any]]:
        """Name, description and parameters of every tool that the scope's model sees; detached."""
        resolver = self._resolver
        chain = self.ctx.fiber.house.scopes.chain(scope)
        mode = resolver.mode(chain)
        return [
            {"name": tool.name, "description": shown.description, "parameters": thaw(shown.parameters)}
            for tool, shown in ((tool, tool.definition) for tool in resolver.visible(chain))
            if mode != "code" or tool.name in RESERVED_NAMES
        ]

    def execution_mode(self, call: ToolExecutionInput) -> Literal["parallel", "exclusive"]:
        """Whether a call may overlap with its siblings: only where the tool's classifier says exactly ``True``."""
        try:
            definition = self.get(call.name, call.agent)
            if definition is None or definition.is_concurrency_safe is None:
                return "exclusive"
            arguments = snapshot_json(call.arguments, max_depth=self.machine.settings.max_depth)
            return "parallel" if definition.is_concurrency_safe(arguments) is True else "exclusive"
        except Exception:
            # A classifier that fails has not said that overlapping is safe.
            return "exclusive"

    # Calling.

    def execute(self, call: ToolExecutionInput) -> Coroutine[Any, Any, ToolExecutionResult]:
        """Take one call through the pipeline. Never raises for what tool, listener or input did."""
        return Call(self.machine, call).run()

    async def foresee(self, call: ToolExecutionInput) -> Foresight:
        """Say beforehand what policy would decide about a call; no approval is asked for and no body runs."""
        return await foresee(Call(self.machine, call))

    async def execute_batch(
        self, calls: Sequence[ToolExecutionInput], max_parallel: int = 10
    ) -> list[ToolExecutionResult]:
        """Run a model's batch; the results in the order of ``calls``."""
        if max_parallel < 1:
            raise ValueError(f"execute_batch takes max_parallel of 1 or more, not {max_parallel!r}")
        return await Batch(self, calls, max_parallel).run()

    @property
    def _resolver(self) -> Resolver:
        """What answers the caller: what is in force or, while its plugin is applied aside, what is to be."""
        ledger = self.ctx.fiber.ledger
        return self.machine.resolver if ledger is self.machine.ledger else self.machine.resolver.over(ledger)

    def _find(self, name: str, scope: Hashable | None) -> RegisteredTool | None:
        resolver = self._resolver
        if resolver is self.machine.resolver:
            return self.machine.pipeline(scope).find(name)
        return resolver.find(name, self.ctx.fiber.house.scopes.chain(scope))

    def _scope_of(self, what: str) -> Hashable:
        if self.ctx.scope_key is None:
            raise ToolRegistrationError(
                f"plugin {self.ctx.fiber.id!r} calls tools.{what}() on a context without a scope; "
                "call it through ctx.scope(key).ctx"
            )
        return self.ctx.scope_key


def _announce(machine: Machine) -> Undo:
    """Emit ``tools/change`` whenever a tool comes or goes or a restriction changes."""
    kernel = machine.kernel

    def changed(entries: object) -> None:
        emit(kernel.events.listeners("tools/change"))

    undos = [kernel.ledger.watch(table, changed) for table in (TOOL, RESTRICTION, MODE)]
    return lambda: [undo() for undo in undos]


def install(ctx: Context, settings: ToolSettings | None = None) -> None:
    """Give a kernel the service ``tools``, as the host's own."""
    service = ToolRuntime(settings)
    service.ctx = ctx
    service.start()
    ctx.provide("tools", service)
