"""The plugin that is worked on: a file, a folder, or an installed plugin by its name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from attrs import field, frozen

from dsh_runtime.cli.dev.project import entry_points, folders_below, plugin_files, source_root
from dsh_runtime.cli.errors import CliError
from dsh_runtime.loader.discover import AmbiguousNameError, find_installed, installed_plugins
from dsh_runtime.loader.errors import did_you_mean, quoted


@frozen
class DevTarget:
    """What is worked on.

    ``uses`` has the ``use`` of each plugin by its name, ``roots`` are the folders that imports come from, ``folders``
    are watched with those below them.
    """

    label: str
    uses: dict[str, str]
    roots: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    here: Path = field(factory=Path.cwd)

    def watched(self) -> frozenset[Path]:
        """The folders to watch, whatever is loaded by now."""
        return frozenset(place for folder in self.folders for place in folders_below(folder)[0])


def find_target(path: str | None, *, here: Path) -> DevTarget | None:
    """The plugin at a path; without one the project in the current folder, if it is one."""
    if path is None:
        return _project(here, entry_points(here)) if entry_points(here) else None
    if not path:
        raise CliError("PATH is empty; give the file or folder of a plugin, or its name")
    place, attr = _split(path)
    absolute = Path(os.path.abspath(place))
    if absolute.is_dir():
        return _folder(absolute)
    if absolute.suffix == ".py" or os.sep in path or absolute.exists():
        return _file(absolute, attr)
    return _installed(path)


def _split(path: str) -> tuple[str, str | None]:
    """``file.py:attr`` as a ``use`` has it."""
    found = re.fullmatch(r"(.+\.py):([^:/\\]+)", path)
    return (found[1], found[2]) if found else (path, None)


def _file(file: Path, attr: str | None) -> DevTarget:
    if not file.is_file():
        if file.exists():
            raise CliError(f"'{file}' is no regular file; give the file or folder of a plugin, or its name")
        raise CliError(f"there is no file or folder '{file}'; give the file or folder of a plugin, or its name")
    if file.suffix != ".py":
        raise CliError(f"'{file}' is no Python file; give the file or folder of a plugin, or its name")
    use = f"{file}:{attr}" if attr else str(file)
    return DevTarget(file.name, {_id_of(attr or file.stem): use}, folders=())


def _folder(folder: Path) -> DevTarget:
    points = entry_points(folder)
    if points:
        return _project(folder, points)
    if (folder / "__init__.py").is_file():
        return _package(folder)
    files = plugin_files(folder)
    if len(files) == 1:
        return _file(files[0], None)
    if files:
        names = ", ".join(file.name for file in files[:5])
        raise CliError(f"folder '{folder}' holds several plugins ({names}); name one, such as '{files[0]}'")
    raise CliError(
        f"folder '{folder}' holds no plugin: no pyproject.toml with an entry point of the group dsh.plugins, no "
        "package, and no Python file that defines apply(ctx); begin one with 'dsh-run new NAME'"
    )


def _project(folder: Path, points: dict[str, str]) -> DevTarget:
    modules = {name: value.partition(":")[0].strip() for name, value in points.items()}
    roots = {name: source_root(folder, module) for name, module in modules.items()}
    lost = [name for name, root in roots.items() if root is None and find_installed(name) is None]
    if lost:
        module = modules[lost[0]]
        raise CliError(
            f"'{folder / 'pyproject.toml'}' names the module '{module}' for plugin '{lost[0]}', which is neither in "
            f"'{folder / 'src'}' nor in '{folder}'; correct the entry point, or install the project"
        )
    found = tuple(dict.fromkeys(root for root in roots.values() if root is not None))
    tops = [root / modules[name].partition(".")[0] for name, root in roots.items() if root is not None]
    uses = {name: value.replace(" ", "") for name, value in points.items()}
    return _target(str(folder), uses, found, tuple(top for top in tops if top.is_dir()))


def _package(folder: Path) -> DevTarget:
    if not folder.name.isidentifier():
        raise CliError(f"folder '{folder}' is a package whose name is no identifier; rename it")
    return _target(str(folder), {_id_of(folder.name): folder.name}, (folder.parent,), (folder,))


def _target(label: str, uses: dict[str, str], roots: tuple[Path, ...], folders: tuple[Path, ...]) -> DevTarget:
    large = [folder for folder in folders if not folders_below(folder)[1]]
    note = "'{}' holds too many folders to watch them all: those below the first ones are watched once they are used"
    notes = tuple(note.format(folder) for folder in large)
    return DevTarget(label, uses, roots, tuple(dict.fromkeys(folders)), notes)


def _installed(name: str) -> DevTarget:
    """An installed plugin by its entry point, or by its wheel."""
    try:
        found = find_installed(name)
    except AmbiguousNameError as error:
        raise CliError(str(error)) from error
    plugins = [found] if found is not None else [one for one in installed_plugins() if one.distribution == name]
    if not plugins:
        known = [one.name for one in installed_plugins()]
        raise CliError(
            f"there is no file, folder or installed plugin {quoted(name)}; give the path of one, or the name of an "
            f"installed one; {did_you_mean(name, known)}"
        )
    return DevTarget(name, {one.name: one.name for one in plugins})


def _id_of(word: str) -> str:
    """A name as an id of the config takes it."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", word).strip("._-")[:64] or "plugin"
