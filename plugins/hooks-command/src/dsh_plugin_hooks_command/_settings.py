"""The ``hooks`` of a client's settings file.

    {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}]}}

A hook of another type, or for an event that the host has no counterpart for, is an error where it would be policy
(``PreToolUse``, ``PostToolUse``), and is passed over elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dsh_plugin_hooks_command._config import Hook
from dsh_plugin_hooks_command._errors import HookSettingsError

_MOST: Final = 1_048_576


def read_settings(path: Path) -> tuple[tuple[Hook, ...], tuple[Hook, ...]]:
    """The hooks before and after a call that a settings file names."""
    try:
        if path.stat().st_size > _MOST:
            raise ValueError(f"it is larger than {_MOST:,} bytes")
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise HookSettingsError(f"the settings {str(path)!r} cannot be read: {error}") from error
    hooks = document.get("hooks", {}) if isinstance(document, dict) else None
    if not isinstance(hooks, dict):
        raise HookSettingsError(f"the settings {str(path)!r} have no object 'hooks'")
    pre, post = (tuple(_hooks(hooks.get(event, []), f"{path}: {event}")) for event in ("PreToolUse", "PostToolUse"))
    return pre, post


def _hooks(groups: Any, subject: str) -> Iterator[Hook]:
    for group in _list(groups, subject):
        matcher = group.get("matcher", "*")
        for hook in _list(group.get("hooks"), f"{subject}: 'hooks'"):
            if hook.get("type") != "command" or not isinstance(hook.get("command"), str):
                kind = hook.get("type")
                raise HookSettingsError(f"{subject} has a hook of type {kind!r}; only commands are run here")
            try:
                yield Hook(hook["command"], matcher, float(hook.get("timeout", 60)))
            except (TypeError, ValueError) as error:
                raise HookSettingsError(f"{subject} has a hook that cannot be used: {error}") from None


def _list(value: Any, subject: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(member, dict) for member in value):
        raise HookSettingsError(f"{subject} is no list of objects")
    return value
