"""Writes the pages that are drawn from the code: ``hooks.md`` and ``lifecycle.md``.

    python docs/generate.py

A test fails when a page is not what this gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dsh_hookspecs import HOOKSPECS_VERSION, EventInfo, specs

from dsh_runtime.core import lifecycle

HERE = Path(__file__).parent
GENERATED = "<!-- Written by docs/generate.py; edit what it is drawn from. -->"

HOOKS = """\
A plugin listens with `ctx.on("tools/pre-execute", fn)` inside `apply`, or with an `@hookimpl` function of the hook's
name. Both end in the same list. A listener takes any of the arguments, by their names. In a **waterfall** it answers,
or returns what `next()` gave; it may be sync or async. An **emit** is only observed; its listeners are sync.

*Scoped* events are heard by the listeners of the host and of the scopes on the way to the call's agent; the others by
all. This is version {version} of the hook interface; a plugin that needs it says `requires_hookspecs = "{version}"`.
"""

LIFECYCLE = """\
A fiber is one running instance of a plugin. It is *pending* until its services are there, *loading* while `apply` runs,
*active* while what it registered is in force, *unloading* while that is undone. *failed* keeps the error. *disposed* is
the end.

The states and what may follow what are one table, `dsh_runtime.core.lifecycle.TRANSITIONS`; a change that the table
does not have is a bug of the core. Each change is told as [`plugin/state`](hooks.md).
"""

UNLOADING = """\
## Unloading

1. What the fiber has registered is taken out of force, in one step: tools, listeners, guards, services.
2. Calls that still use it come to rest; after `drain_timeout` they are aborted.
3. The plugins that use its services unload, the last in order first. They can still use the service while they do.
4. Its own tasks, children and effects go, one after the other, the last first. Together they have `teardown_timeout`;
   an undo that waits longer is cancelled. One that fails stops none of the others and is logged.

One change of a fiber runs at a time, and the latest wish wins: an update that comes while another one loads replaces
it. Disposal is final.
"""


def pages() -> dict[str, str]:
    """The generated pages by file name."""
    return {"hooks.md": hooks_page(), "lifecycle.md": lifecycle_page()}


def hooks_page() -> str:
    """The hook reference."""
    sections = "\n".join(_section(hook) for hook in _hooks())
    return f"# Hooks\n\n{GENERATED}\n\n{HOOKS.format(version=HOOKSPECS_VERSION)}\n{sections}"


def lifecycle_page() -> str:
    """The states of a fiber."""
    rows = "\n".join(f"| {old} | {new} | {why} |" for (old, new), why in lifecycle.TRANSITIONS.items())
    table = f"| from | to | when |\n|---|---|---|\n{rows}\n"
    diagram = f"```mermaid\n{lifecycle.diagram()}\n```\n"
    return f"# The life of a plugin\n\n{GENERATED}\n\n{LIFECYCLE}\n{diagram}\n{table}\n{UNLOADING}"


def _hooks() -> Iterator[Callable[..., Any]]:
    """The hookspecs, in the order of their source."""
    for value in vars(specs).values():
        if isinstance(getattr(value, "dsh_event", None), EventInfo):
            yield value


def _section(hook: Callable[..., Any]) -> str:
    info: EventInfo = hook.dsh_event  # type: ignore[attr-defined]
    parameters = inspect.signature(hook).parameters.values()
    arguments = ", ".join(f"`{parameter.name}: {parameter.annotation}`" for parameter in parameters) or "none"
    arguments = arguments.replace("|", r"\|")  # which would end a cell of the table
    lines = [
        f"## {info.name}",
        "",
        "| | |",
        "|---|---|",
        f"| hook | `{hook.__name__}` |",
        f"| mode | {info.mode}{', sync listeners only' if info.sync_only else ''} |",
        f"| scoped | {'yes' if info.scoped else 'no'} |",
        f"| arguments | {arguments} |",
    ]
    if info.mode == "waterfall":
        answers = ", ".join(f"`{answer.__name__}`" for answer in info.returns) or "anything but `None`"
        lines.append(f"| answers | {answers} |")
    text = inspect.getdoc(hook) or ""
    return "\n".join([*lines, "", text.replace("``", "`"), ""])


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / name).write_text(text, "utf-8")
