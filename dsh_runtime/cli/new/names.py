"""Whether a new plugin can have a name: one serves as distribution, entry point, package and, in parts, in code."""

from __future__ import annotations

import builtins
import importlib.util
import keyword
import re
import sys
from collections.abc import Iterable
from typing import Final

from attrs import frozen

from dsh_runtime.loader.discover import installed_plugins
from dsh_runtime.loader.errors import quoted
from dsh_runtime.tools.definition import RESERVED_NAMES

MAX_NAME: Final = 64
_FORM: Final = r"[a-z](?:[a-z0-9]|[-_](?=[a-z0-9]))*"
_HOST: Final = frozenset({"dsh", "dsh_run", "dsh_runtime", "dsh_hookspecs", "dsh_file_plugins"})
_SERVICES: Final = frozenset({"tools", "approval", "sessions", "redact", "code_runtime", "mcp_server"})
#: What the generated modules and tests call their own things.
_IN_TEMPLATES: Final = frozenset(
    {
        *("apply", "assert_denied", "assert_failed", "assert_ok", "call", "clash_error", "config", "conftest"),
        *("consumer", "context", "erase"),
        *("field", "frozen", "harness_error", "inject", "look_up", "name", "nothing_has_run"),
        *("open_trial", "plugin_checks", "pytest", "ran", "service", "src", "test", "tests", "tool", "undo"),
        "test_what_every_plugin_keeps_to",
    }
)
_WINDOWS: Final = frozenset(
    {"aux", "con", "nul", "prn", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))}
)


class BadNameError(Exception):
    """Why a plugin cannot have a name, and what to do."""


@frozen
class Taken:
    """The names that an environment has given away, each with who has it."""

    plugins: dict[str, str]
    distributions: dict[str, str]
    packages: dict[str, str]


def package_of(name: str) -> str:
    """The import name that goes with a plugin's name."""
    return name.replace("-", "_")


def class_of(name: str) -> str:
    """The class name that goes with a plugin's name."""
    return "".join(part.capitalize() for part in re.split(r"[-_]", name))


def check_name(name: str, taken: Taken) -> None:
    """Raise :class:`BadNameError` unless a new plugin can have this name."""
    if len(name) > MAX_NAME:
        raise BadNameError(f"the name {quoted(name)} has {len(name)} letters; take one of at most {MAX_NAME}")
    if re.fullmatch(_FORM, name) is None:
        raise BadNameError(
            f"{quoted(name)} cannot be a plugin's name: lower-case letters, digits, '-' and '_' between them, "
            f"a letter first; {_instead(name)}"
        )
    reason = _reserved(package_of(name))
    if reason is not None:
        raise BadNameError(f"a plugin cannot be called {quoted(name)}: {reason}; take another, such as 'my-{name}'")
    clash = _clash(name, taken)
    if clash is not None:
        raise BadNameError(f"the name {quoted(name)} is taken: {clash}; take another, or uninstall that")


def _instead(name: str) -> str:
    near = re.sub(r"[^a-z0-9]+", "-", name.rpartition("/")[2].lower()).strip("-")
    if "/" in name or "\\" in name:
        return "name the folder around the new one with --in"
    return f"try {near!r}" if re.fullmatch(_FORM, near) and len(near) <= MAX_NAME else "such as 'word-count'"


def _reserved(package: str) -> str | None:
    """Why no plugin can have this name, whatever is installed."""
    if keyword.iskeyword(package):
        return "it is a keyword of Python"
    if package in sys.stdlib_module_names or hasattr(builtins, package):
        return "Python itself has something of that name"
    if package in _HOST or package in RESERVED_NAMES or package in _SERVICES:
        return "the host itself has something of that name"
    if package in _IN_TEMPLATES:
        return "the new project needs that name for something else"
    return "no file can have that name on Windows" if package in _WINDOWS else None


def _clash(name: str, taken: Taken) -> str | None:
    if name in taken.plugins:
        return f"{taken.plugins[name]} brings a plugin {name!r}"
    if normal(name) in taken.distributions:
        return f"{taken.distributions[normal(name)]} is installed"
    package = package_of(name)
    return f"{taken.packages[package]} has the module {package!r}" if package in taken.packages else None


def normal(name: str) -> str:
    """A distribution's name as installers compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def taken_here(name: str) -> Taken:
    """What this environment has under a name, or under what goes with it; nothing is imported."""
    return Taken(
        {plugin.name: f"{plugin.distribution} {plugin.version}" for plugin in installed_plugins()},
        dict(_distributions(normal(name))),
        dict(_packages(package_of(name))),
    )


def _distributions(name: str) -> Iterable[tuple[str, str]]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        yield name, f"the distribution {name!r} {version(name)}"
    except (PackageNotFoundError, ValueError):
        return


def _packages(package: str) -> Iterable[tuple[str, str]]:
    if not package.isidentifier():
        return
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return
    if spec is not None and spec.origin is not None:  # a mere folder on the path is nobody's
        yield package, f"'{spec.origin}'"
