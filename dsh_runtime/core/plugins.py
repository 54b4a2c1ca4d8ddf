"""What a plugin object says of itself, read once and checked before anything is changed.

A plugin is a module or object with any of ``name``, ``inject``, ``Config``, ``apply``, ``@hookimpl`` functions; a
:class:`~dsh_runtime.core.services.Service` class or instance; or a plain function, which counts as ``apply``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from attrs import field, frozen
from dsh_hookspecs import HOOKSPECS_VERSION

from dsh_runtime.core.errors import HookspecsVersionError, PluginError
from dsh_runtime.core.services import apply_service, is_service

IMPL_ATTRIBUTE = "dsh_impl"


@frozen(eq=False)
class PluginSpec:
    """A plugin as the core sees it. ``inject`` maps a service's name to whether it is required."""

    source: Any
    name: str
    inject: Mapping[str, bool]
    config_type: Any
    apply: Callable[..., Any] | None
    apply_takes_config: bool
    hooks: Mapping[str, Callable[..., Any]] = field(factory=dict)
    reload_policy: str = "swap"
    provides: tuple[str, ...] = ()


def read_plugin(source: Any) -> PluginSpec:
    """The :class:`PluginSpec` of ``source``; :class:`PluginError` says what is wrong with it."""
    name = _name_of(source)
    apply = _apply_of(source, name)
    hooks = _hooks_of(source)
    if apply is None and not hooks:
        raise PluginError(
            f"{_told(source)} is no plugin: it has neither apply(ctx) nor @hookimpl functions; "
            "give a module or object with one of them, or a function apply(ctx)"
        )
    _check_version(source, name)
    return PluginSpec(
        source=source,
        name=name,
        inject=_inject_of(source, name),
        config_type=getattr(source, "Config", None),
        apply=apply,
        apply_takes_config=apply is not None and _takes_config(apply, name),
        hooks=hooks,
        reload_policy=_reload_policy_of(source, name),
        provides=_provides_of(source, name),
    )


def _told(source: Any) -> str:
    """An object as a message names it; a module is known by its file."""
    file = getattr(source, "__file__", None) if isinstance(source, ModuleType) else None
    return f"module '{file}'" if file is not None else f"{source!r:.200}"


def _name_of(source: Any) -> str:
    name = getattr(source, "name", None)
    if name is None:
        name = getattr(source, "__name__", None) or type(source).__name__
        return str(name).rpartition(".")[2]
    if not isinstance(name, str) or not name:
        raise PluginError(f"plugin {source!r:.200} has the name {name!r:.200}; a name is a text that is not empty")
    return name


def _apply_of(source: Any, name: str) -> Callable[..., Any] | None:
    if inspect.isroutine(source):
        return source
    if is_service(source):
        return functools.partial(apply_service, source) if _is_configured(source) else _without_config(source)
    apply = getattr(source, "apply", None)
    if apply is not None and not callable(apply):
        raise PluginError(f"plugin {name!r} has an apply that is no function: {apply!r:.200}; define apply(ctx)")
    if inspect.isclass(source) and inspect.isfunction(apply) and "self" in inspect.signature(apply).parameters:
        raise PluginError(f"plugin {name!r} is a class whose apply() is a method; give an instance, {name}()")
    return apply


def _is_configured(service: Any) -> bool:
    """Whether a service is a class that is made with its config."""
    if not isinstance(service, type):
        return False
    try:
        inspect.signature(service).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _without_config(service: Any) -> Callable[..., Any]:
    def apply(ctx: Any) -> Any:
        return apply_service(service, ctx)

    return apply


def _takes_config(apply: Callable[..., Any], name: str) -> bool:
    try:
        signature = inspect.signature(apply)
    except (TypeError, ValueError):
        return False
    try:
        signature.bind(None, None)
    except TypeError:
        pass
    else:
        return True
    try:
        signature.bind(None)
    except TypeError:
        raise PluginError(f"plugin {name!r} has apply{signature}; define apply(ctx) or apply(ctx, config)") from None
    return False


def _inject_of(source: Any, name: str) -> dict[str, bool]:
    inject = getattr(source, "inject", ())
    if isinstance(inject, Mapping):
        services = dict(inject)
    elif isinstance(inject, (list, tuple, set, frozenset)) and all(isinstance(service, str) for service in inject):
        services = dict.fromkeys(inject, True)
    else:
        raise PluginError(
            f"plugin {name!r} has inject = {inject!r:.200}; give a list of names, or a mapping name -> required"
        )
    for service, required in services.items():
        if not isinstance(service, str) or not isinstance(required, bool):
            raise PluginError(
                f"plugin {name!r} injects {service!r:.200}: {required!r:.200}; "
                "a service is a name, and required true or false"
            )
    return services


def _reload_policy_of(source: Any, name: str) -> str:
    policy = getattr(source, "reload_policy", "swap")
    if policy not in ("swap", "stop-first", "restart"):
        raise PluginError(
            f"plugin {name!r} has reload_policy = {policy!r:.200}; it is 'swap', 'stop-first' or 'restart'"
        )
    return str(policy)


def _provides_of(source: Any, name: str) -> tuple[str, ...]:
    """The services that a plugin says it provides; known beforehand, they let a circle be named."""
    if is_service(source):
        offered = getattr(source, "name", None)
        if not isinstance(offered, str) or not offered.isidentifier():
            raise PluginError(f"service {name!r} provides {offered!r:.200}; give its class name = '…', an identifier")
        return (offered,)
    provides = getattr(source, "provides", ())
    if isinstance(provides, str) or not all(isinstance(service, str) for service in provides):
        raise PluginError(f"plugin {name!r} has provides = {provides!r:.200}; give a list of names of services")
    return tuple(provides)


def _hooks_of(source: Any) -> dict[str, Callable[..., Any]]:
    """The functions that carry pluggy's mark, by attribute name; on an object also those of its class."""
    if inspect.isroutine(source):
        return {}
    names = vars(source) if isinstance(source, ModuleType) else _attribute_names(source)
    hooks = {}
    for attribute in names:
        if attribute.startswith("__"):
            continue
        function = inspect.getattr_static(source, attribute, None)
        function = getattr(function, "__func__", function)
        if getattr(function, IMPL_ATTRIBUTE, None) is not None:
            hooks[attribute] = getattr(source, attribute)
    return hooks


def _attribute_names(source: Any) -> dict[str, None]:
    """Attribute names in the order of definition, bases first."""
    names: dict[str, None] = {}
    classes = source.__mro__ if isinstance(source, type) else type(source).__mro__
    for cls in reversed(classes):
        names.update(dict.fromkeys(vars(cls)))
    names.update(dict.fromkeys(getattr(source, "__dict__", ())))
    return names


def _check_version(source: Any, name: str) -> None:
    wanted = getattr(source, "requires_hookspecs", None)
    if wanted is None:
        return
    try:
        major, minor = (int(part) for part in str(wanted).split("."))
    except ValueError:
        raise PluginError(f"plugin {name!r} has requires_hookspecs = {wanted!r:.200}; write it as '1.2'") from None
    host_major, host_minor = (int(part) for part in HOOKSPECS_VERSION.split("."))
    if major != host_major or minor > host_minor:
        raise HookspecsVersionError(
            f"plugin {name!r} is built for hookspecs {wanted}, this host has {HOOKSPECS_VERSION}; "
            "update the older of the two"
        )
