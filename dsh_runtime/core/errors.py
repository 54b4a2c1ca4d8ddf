"""The errors of the core: what a plugin or an embedding application did that it may not do."""

from __future__ import annotations

from dsh_hookspecs import HarnessError


class PluginError(HarnessError):
    """An object is no plugin, or declares something that the host cannot honour."""

    default_code = "PLUGIN_INVALID"


class HookspecsVersionError(PluginError):
    """A plugin is built for hookspecs that this host does not have."""


class HookError(HarnessError):
    """A listener or hook specification does not fit."""

    default_code = "HOOK_INVALID"


class ServiceError(HarnessError):
    """A service is used or offered in a way that its rules forbid."""

    default_code = "SERVICE_INVALID"


class ScopeError(HarnessError):
    """A scope is bound, used or ended in a way that its rules forbid."""

    default_code = "SCOPE_INVALID"


class ScopeClosedError(ScopeError):
    """The scope has been disposed."""

    default_code = "SCOPE_CLOSED"


class DisposedError(HarnessError):
    """Something is registered on a context that has been disposed."""

    default_code = "DISPOSED"


class ClashError(HarnessError):
    """Two owners claim one name."""

    default_code = "CLASH"


class DeadlockError(HarnessError):
    """A fiber waits for something that waits for the fiber."""

    default_code = "DEADLOCK"


class TeardownTimeoutError(HarnessError):
    """An undo step did not end before the teardown's deadline."""

    default_code = "TEARDOWN_TIMEOUT"
