"""One thing that is wrong."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from attrs import frozen

from dsh_runtime.loader.errors import KeyPath, Location


class Kind(StrEnum):
    """What a finding is about; the words are those of the JSON document."""

    NOT_FOUND = "not-found"
    IMPORT = "import"
    PIN = "pin"
    CONFIG = "config"
    VERSION = "version"
    ENTRY_POINT = "entry-point"
    HOOK = "hook"
    SHADOWED = "shadowed"
    CLASH = "clash"
    SERVICE = "service"
    CIRCLE = "circle"
    LATE = "late"
    FAILED = "failed"
    UNLOAD = "unload"
    HOST = "host"
    DISABLED = "disabled"


class Severity(StrEnum):
    """``error``: the host does not start; ``warning``: it does, and something is wrong; ``note``: as it was wished."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


REMEDIES: Final = {
    Kind.NOT_FOUND: "correct 'use', or install the plugin",
    Kind.IMPORT: "correct the line, or remove the plugin from the config",
    Kind.PIN: "look at the change and run 'dsh-run plugins pin'",
    Kind.CONFIG: "correct the value in the config",
    Kind.VERSION: "install versions that fit one another",
    Kind.ENTRY_POINT: "uninstall one of the wheels",
    Kind.HOOK: "correct the name or the arguments of the hook",
    Kind.SHADOWED: "rename one of the tools, or restrict who sees them",
    Kind.CLASH: "rename one of the two, or remove one of the plugins",
    Kind.SERVICE: "add a plugin that provides the service",
    Kind.CIRCLE: "make one of the services optional in inject",
    Kind.LATE: "let apply() return and hand long work to ctx.start_soon",
    Kind.FAILED: "mend it, or remove it from the config",
    Kind.UNLOAD: "undo in the undo of the effect what apply() has begun",
    Kind.HOST: "correct the [host] settings",
    Kind.DISABLED: "remove enabled = false to load it",
}
"""What to do where the message does not say it better."""


_TELL_THEMSELVES: Final = frozenset(Kind) - {Kind.CONFIG, Kind.UNLOAD}
"""The kinds whose messages are the host's own, and end with the remedy behind the last semicolon."""


@frozen(kw_only=True)
class Finding:
    """What is wrong with which plugin, what to do, where in the author's code, and where in the config."""

    kind: Kind
    severity: Severity
    message: str
    remedy: str
    plugin: str | None = None
    place: Location | None = None
    config: Location | None = None
    path: KeyPath = ()


def finding(
    kind: Kind,
    severity: Severity,
    text: str,
    *,
    plugin: str | None = None,
    place: Location | None = None,
    config: Location | None = None,
    path: KeyPath = (),
    remedy: str | None = None,
) -> Finding:
    """A finding from a message; where its kind's messages end with a remedy, that is taken from it."""
    message, own = text, None
    if kind in _TELL_THEMSELVES and "; " in text:
        message, _, own = text.rpartition("; ")
        if own.startswith("known: ") and "; " in message:  # What there is besides helps, and is no remedy.
            message, _, own = message.rpartition("; ")
    return Finding(
        kind=kind,
        severity=severity,
        message=message,
        remedy=remedy or own or REMEDIES[kind],
        plugin=plugin,
        place=place,
        config=config,
        path=path,
    )
