"""Services: objects bound to a name that other plugins inject.

A service made from :class:`Service` is seen through a view: in a method, ``self.ctx`` is the context of whoever calls,
so what the method registers belongs to the caller and dies with it. A view is an instance of a cached subclass that
shares the service's attributes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from dsh_runtime.core.errors import ServiceError

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context

SERVICE = "service"


class Service:
    """Base of services. The class, or an instance, is the plugin; the instance becomes the service ``name``.

    ``start(self)`` runs before the service counts as there, ``stop(self)`` when it goes; both may be async, and
    ``start`` may return an undo. Inside a method ``self.ctx`` is the caller's context, inside ``start`` and ``stop``
    the service's own.
    """

    name: ClassVar[str]
    inject: ClassVar[Sequence[str] | Mapping[str, bool]] = ()

    ctx: Context

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("__slots__") and not cls.__dict__.get("_dsh_view"):
            raise ServiceError(
                f"service {cls.__name__} has __slots__, which its callers' views cannot share; remove them"
            )

    def start(self) -> Any:
        """Set the service up; what it registers on ``self.ctx`` is undone with it."""

    def stop(self) -> Any:
        """Take the service down, before its registrations are undone."""

    def keep(self, key: Hashable, value: Any) -> Callable[[], Any]:
        """Keep a value for whoever calls, under a key that no other plugin has taken; give back the undo.

        It goes with that plugin. Where that is reloaded, the value of the new version takes the place of the old one's
        in the swap, and not before. Through a scope's context the value is that scope's own.
        """
        return self.ctx.register(self._table(), value, key=key)

    def kept(self) -> dict[Any, Any]:
        """The values that are kept, by key, as whoever calls sees them: those of its scope hide those above."""
        fiber = self.ctx.fiber
        found: dict[Any, Any] = {}
        for layer in (None, *reversed(fiber.house.scopes.chain(self.ctx.scope_key))):
            found.update((entry.key, entry.value) for entry in fiber.ledger.group(self._table(), layer))
        return found

    def _table(self) -> str:
        own: Context = self.__dict__["ctx"]  # The attribute of a view is its caller's.
        return f"the value of {own.fiber.id!r} under"


def is_service(source: Any) -> bool:
    """Whether an object is a service, or a class of them, that can be mounted as a plugin."""
    return isinstance(source, Service) or (isinstance(source, type) and issubclass(source, Service))


def apply_service(source: Service | type[Service], ctx: Context, config: Any = None) -> Any:
    """The ``apply`` of a service: make it, start it, provide it."""
    service = _make(source, config) if isinstance(source, type) else source
    service.ctx = ctx
    return _start(service, ctx)


def _make(cls: type[Service], config: Any) -> Service:
    return cls(config) if config is not None else cls()  # type: ignore[call-arg]


async def _start(service: Service, ctx: Context) -> Any:
    outcome = service.start()
    if inspect.isawaitable(outcome):
        outcome = await outcome
    ctx.effect(lambda: service.stop)
    ctx.provide(type(service).name, service)
    return outcome


def bind(value: Any, ctx: Context) -> Any:
    """``value`` as ``ctx`` sees it: a view for a :class:`Service`, anything else as it is."""
    if not isinstance(value, Service):
        return value
    cls = type(value)
    view_class = _view_class(cls.__mro__[1] if "_dsh_view" in cls.__dict__ else cls)
    view = view_class.__new__(view_class)
    view.__dict__ = value.__dict__
    view._dsh_caller = ctx  # type: ignore[attr-defined]
    return view


def _view_class(cls: type[Service]) -> type[Service]:
    """The subclass whose ``ctx`` is the caller's, kept on the class so that it goes with it."""
    found: type[Service] | None = cls.__dict__.get("_dsh_view_class")
    if found is None:
        found = _make_view_class(cls)
        cls._dsh_view_class = found  # type: ignore[attr-defined]
    return found


def _make_view_class(cls: type[Service]) -> type[Service]:

    def ctx(self: Any) -> Context:
        caller: Context = self._dsh_caller
        return caller

    def set_ctx(self: Any, value: Context) -> None:
        raise ServiceError(f"the ctx of service {cls.name!r} is its caller's and cannot be assigned")

    body = {
        "__slots__": ("_dsh_caller",),
        "_dsh_view": True,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "ctx": property(ctx, set_ctx),
    }
    return type(cls.__name__, (cls,), body)
