"""The two markers: ``hookspec`` declares an event, ``hookimpl`` listens to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

import pluggy
from attrs import frozen

#: The version of this hook interface. A plugin that says ``requires_hookspecs = "1.2"`` needs this minor or a later.
HOOKSPECS_VERSION: Final = "1.0"
#: The name under which pluggy finds markers.
PROJECT: Final = "dsh"

EventMode: TypeAlias = Literal["waterfall", "emit"]
F = TypeVar("F", bound=Callable[..., Any])

#: Marks a function as listener of the event that its name stands for (``tools_pre_execute``: ``tools/pre-execute``).
hookimpl = pluggy.HookimplMarker(PROJECT)
_spec = pluggy.HookspecMarker(PROJECT)


@frozen
class EventInfo:
    """What a hookspec says of its event.

    ``returns`` are the types of an answer to a waterfall (empty: any but ``None``); ``sync_only`` refuses async
    listeners; ``scoped`` filters listeners by the scope of the dispatch.
    """

    name: str
    mode: EventMode
    returns: tuple[type, ...] = ()
    sync_only: bool = False
    scoped: bool = True


class HookspecMarker:
    """Marks a function as the declaration of an event."""

    def __call__(
        self,
        *,
        mode: EventMode,
        event: str | None = None,
        returns: tuple[type, ...] = (),
        sync_only: bool = False,
        scoped: bool = True,
        warn_on_impl: Warning | None = None,
        warn_on_impl_args: Mapping[str, Warning] | None = None,
    ) -> Callable[[F], F]:
        """Declare an event: its mode, and its name where that is not ``first/rest-of-it`` of ``first_rest_of_it``."""

        def mark(function: F) -> F:
            name = event if event is not None else event_name(function.__name__)
            info = EventInfo(name, mode, returns, sync_only, scoped)
            marked = _spec(function, warn_on_impl=warn_on_impl, warn_on_impl_args=warn_on_impl_args)
            marked.dsh_event = info  # type: ignore[attr-defined]
            return marked

        return mark


hookspec = HookspecMarker()


def event_name(hook: str) -> str:
    """The event that a hook's name stands for: ``tools_pre_execute`` gives ``tools/pre-execute``."""
    head, _, rest = hook.partition("_")
    return f"{head}/{rest.replace('_', '-')}" if rest else head


def hook_name(event: str) -> str:
    """The hook that an event's name stands for: ``tools/pre-execute`` gives ``tools_pre_execute``."""
    return event.replace("/", "_").replace("-", "_")
