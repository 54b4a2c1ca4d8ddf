"""What goes wrong with a hook."""

from __future__ import annotations

from dsh_hookspecs import HarnessError


class HookCommandError(HarnessError):
    """A command hook has failed: the call fails, too."""

    default_code = "HOOK_FAILED"


class HookSettingsError(HarnessError):
    """The hooks of a settings file cannot be taken over."""

    default_code = "INVALID_HOOKS"
