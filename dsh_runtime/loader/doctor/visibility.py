"""What is there and does not count: tools that others hide, listeners of events that nobody declares."""

from __future__ import annotations

from collections.abc import Iterator

from dsh_runtime.core.events import hook_of, is_optional_hook
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.ledger import Entry
from dsh_runtime.loader.code_mode import presentation_problems
from dsh_runtime.loader.errors import ConfigProblem, Location, did_you_mean
from dsh_runtime.loader.host import Host
from dsh_runtime.tools.registry import TOOL

from .finding import Finding, Kind, Severity, finding


def shadowed_tools(host: Host) -> Iterator[Finding]:
    """Tools of a scope that hide one of the same name further out."""
    fibers = [host.ctx.fiber, *host.ctx.fiber.kernel.fibers]
    entries = [entry for fiber in fibers for entry in fiber.entries if entry.table == TOOL]
    chain = host.ctx.fiber.kernel.scopes.chain
    for inner in entries:
        outer_scopes = [None, *chain(inner.scope)[1:]] if inner.scope is not None else []
        for outer in entries:
            if outer.key == inner.key and outer.scope in outer_scopes:
                yield _shadow(inner, outer)


def _shadow(inner: Entry, outer: Entry) -> Finding:
    text = (
        f"tool {inner.key!r} of plugin {outer.fiber.id!r} is hidden by that of plugin {inner.fiber.id!r} "
        f"in scope {inner.scope!r}; rename one of the two, unless that is what you want"
    )
    return finding(Kind.SHADOWED, Severity.WARNING, text, plugin=outer.fiber.id)


def unheard_hooks(host: Host) -> Iterator[Finding]:
    """Hooks marked ``optionalhook`` that no specification declares: they are passed over without a word."""
    events = host.ctx.fiber.kernel.events
    known = events.hooks()
    for fiber in sorted(host.ctx.fiber.kernel.fibers, key=lambda fiber: fiber.path):
        for attribute, function in fiber.spec.hooks.items():
            hook = hook_of(attribute, function)
            if is_optional_hook(function) and hook not in known:
                yield _unheard(fiber, hook, function, did_you_mean(hook, known))


def _unheard(fiber: Fiber, hook: str, function: object, hint: str) -> Finding:
    code = getattr(function, "__code__", None)
    text = f"plugin {fiber.id!r} implements the optional hook {hook!r}, which no plugin declares, so that it is never "
    return finding(
        Kind.HOOK,
        Severity.WARNING,
        f"{text}asked; {hint}",
        plugin=fiber.id,
        place=Location(code.co_filename, code.co_firstlineno) if code is not None else None,
    )


def host_problems(host: Host) -> Iterator[Finding]:
    """Settings of the host that its plugins do not bear out."""
    problems: list[ConfigProblem] = presentation_problems(host.config)
    for problem in problems:
        yield finding(Kind.HOST, Severity.ERROR, problem.message, config=problem.location, path=problem.path)
