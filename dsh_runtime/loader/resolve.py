"""Turn a row's ``use`` into the plugin object: the only place where configured code is imported."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from dsh_runtime.core.effects import may_be_the_users
from dsh_runtime.tools.definition import ToolDefinition

from .blame import place_of, summary_of
from .discover import AmbiguousNameError, find_installed, installed_plugins
from .errors import ConfigProblem, PluginLoadError, did_you_mean, quoted
from .model import PluginRow
from .target import BadUseError, FileTarget, ModuleTarget, NameTarget, parse_use

FILE_PACKAGE = "dsh_file_plugins"


class PluginNotFoundError(Exception):
    """There is nothing to import under that name; the message says what to do."""


def resolve_plugin(row: PluginRow) -> object:
    """Import what the row uses and return it, or raise a ``PluginLoadError`` that names the row and the cause.

    An error that the plugin's own code raised is the ``__cause__``, with its traceback. A ``KeyboardInterrupt`` that
    may be the user's passes.
    """
    with _blaming(row):
        target = find_target(row)
        if isinstance(target, FileTarget):
            module = import_file(target.file, file_module_name(row.id))
        else:
            module = import_module(target.module)
        found = attribute_of(module, target.attr)
        check_no_tool(found, target.attr)
        return found


def find_target(row: PluginRow) -> FileTarget | ModuleTarget:
    """The file or module that a row means. Entry points are looked at only when ``use`` is a bare name."""
    target = parse_use(row.use, row.directory)
    return _look_up(target, row.directory) if isinstance(target, NameTarget) else target


def check_no_tool(found: object, attr: str | None = None) -> None:
    """Refuse a tool, which is registered by a plugin and is none itself."""
    if isinstance(found, ToolDefinition):
        leave_out = f", and leave ':{attr}' out of 'use'" if attr else ""
        remedy = f"register it in apply(ctx) with ctx.tools.register(…){leave_out}"
        raise PluginNotFoundError(f"{quoted(str(found.name))} is a tool, not a plugin; {remedy}")


def file_module_name(row_id: str) -> str:
    """The module name of a file plugin; a dot in the id would read as a package, so a colon takes its place."""
    return f"{FILE_PACKAGE}.{row_id.replace('.', ':')}"


def import_file(file: Path, name: str) -> ModuleType:
    """Run a Python file as the module ``name``; a failed run leaves ``sys.modules`` as it was."""
    if not os.path.isfile(file):
        raise PluginNotFoundError(f"file '{file}' does not exist or is no regular file; correct 'use'")
    loader = _FreshSourceLoader(name, str(file))
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    _ensure_package()
    with _registered(name, module):
        loader.exec_module(module)
    return module


def import_module(name: str) -> ModuleType:
    """Import a module by name; tell a module that is missing from one that fails."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            message = f"module '{name}' cannot be found ({error}); install it, or correct 'use'"
            raise PluginNotFoundError(message) from error
        raise


def attribute_of(module: ModuleType, attr: str | None) -> object:
    """The attribute of a module that ``use`` names, dots followed; without one, the module itself."""
    value: object = module
    for name in attr.split(".") if attr else ():
        try:
            value = getattr(value, name)
        except AttributeError as error:
            public = [word for word in dir(value) if not word.startswith("_")]
            owner = _owner_name(value)
            message = f"'{owner}' has no attribute '{name}'; {did_you_mean(name, public)}"
            raise PluginNotFoundError(message) from error
    return value


def _owner_name(value: object) -> str:
    name = getattr(value, "__name__", type(value).__name__)
    file = getattr(value, "__file__", None)
    return str(file) if file and str(name).startswith(f"{FILE_PACKAGE}.") else str(name)


class _FreshSourceLoader(SourceFileLoader):
    """Compiles the source each time: cached bytecode is known by the second, which two edits can share."""

    def get_code(self, fullname: str) -> CodeType:
        code = self.source_to_code(self.get_data(self.path), self.path)
        assert isinstance(code, CodeType)
        return code


@contextmanager
def _registered(name: str, module: ModuleType) -> Iterator[None]:
    previous = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    except BaseException:
        if previous is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = previous
        raise


def _ensure_package() -> None:
    """A parent for the modules of file plugins, so that pickling and introspection can look them up."""
    if FILE_PACKAGE not in sys.modules:
        package = ModuleType(FILE_PACKAGE, "The plugins that a config names by file.")
        package.__path__ = []
        package.__spec__ = ModuleSpec(FILE_PACKAGE, None, is_package=True)
        sys.modules[FILE_PACKAGE] = package


def _look_up(target: NameTarget, directory: Path) -> ModuleTarget:
    plugin = find_installed(target.name)
    if plugin is not None:
        module, _, attr = plugin.value.partition(":")
        return ModuleTarget(module, attr or None)
    if target.may_be_module and _exists(target.name.partition(".")[0]):
        return ModuleTarget(target.name)
    file = directory / f"{target.name}.py"
    if file.is_file():
        message = f"no installed plugin or module is called '{target.name}'; did you mean the file './{file.name}'?"
        raise PluginNotFoundError(message)
    hint = did_you_mean(target.name, {plugin.name for plugin in installed_plugins()})
    message = f"no installed plugin or module is called '{target.name}'; install it, or correct 'use'; {hint}"
    raise PluginNotFoundError(message)


def _exists(top_level: str) -> bool:
    try:
        return importlib.util.find_spec(top_level) is not None
    except ValueError:  # loaded, but without a spec
        return True


@contextmanager
def _blaming(row: PluginRow) -> Iterator[None]:
    try:
        yield
    except (PluginNotFoundError, AmbiguousNameError, BadUseError) as error:
        raise _load_error(row, str(error)) from error
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt) and may_be_the_users():
            raise
        place = place_of(error)
        at = f" at {place}" if place else ""
        message = f"raised {summary_of(error)}{at} while it was imported; correct it, or remove the plugin"
        raise _load_error(row, message) from error


def _load_error(row: PluginRow, message: str) -> PluginLoadError:
    problem = ConfigProblem(
        (*row.trace.root, "use"), f"plugin '{row.id}' (use = '{row.use}'): {message}", row.trace.where(("use",))
    )
    return PluginLoadError([problem])
