"""What a folder holds that can be a plugin. Files are read and not run, and not too many of them."""

from __future__ import annotations

import ast
import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dsh_runtime.loader.autoreload.relevance import IGNORED
from dsh_runtime.loader.discover import GROUP

MAX_BYTES: Final = 1_000_000
MAX_FILES: Final = 2_000
MAX_FOLDERS: Final = 500


def entry_points(folder: Path) -> dict[str, str]:
    """The plugins that the ``pyproject.toml`` of a folder offers: name and ``package.module:attr``."""
    found: Any = _project_table(folder).get("entry-points")
    group = found.get(GROUP) if isinstance(found, dict) else None
    items = group.items() if isinstance(group, dict) else ()
    return {name: value for name, value in items if isinstance(value, str)}


def source_root(folder: Path, module: str) -> Path | None:
    """The folder below a project from which a module can be imported."""
    top = module.partition(".")[0]
    for root in (folder / "src", folder, folder / "lib"):
        if (root / top).is_dir() or (root / f"{top}.py").is_file():
            return root
    return None


def plugin_files(folder: Path) -> list[Path]:
    """The Python files of a folder that look like plugins."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))[:MAX_FILES]
    return [folder / name for name in names if not name.startswith("test_") and _looks_like_plugin(folder / name)]


def folders_below(folder: Path) -> tuple[list[Path], bool]:
    """A folder and those below it that may hold sources, and whether these are all."""
    found: list[Path] = []
    for place, folders, _ in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in IGNORED and not name.startswith("."))
        if len(found) >= MAX_FOLDERS:
            return found, False
        found.append(Path(place))
    return found, True


def _project_table(folder: Path) -> dict[str, Any]:
    file = folder / "pyproject.toml"
    try:
        if not _can_be_read(file):
            return {}
        project = tomllib.loads(file.read_text("utf-8")).get("project")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        return {}
    return project if isinstance(project, dict) else {}


def _can_be_read(file: Path) -> bool:
    """Whether it is a file of ordinary size; to read a pipe would wait for whoever writes it."""
    found = file.stat()
    return stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES


def _looks_like_plugin(file: Path) -> bool:
    """Whether a module defines ``apply``, a hook or a service at its top."""
    try:
        if not _can_be_read(file):
            return False
        tree = ast.parse(file.read_bytes())
    except SyntaxError:
        return True  # Somebody is at work on it.
    except (OSError, ValueError, RecursionError, MemoryError):
        return False
    return any(_makes_plugin(node) for node in tree.body)


def _makes_plugin(node: ast.stmt) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name == "apply" or "hookimpl" in set(_names(node.decorator_list))
    return isinstance(node, ast.ClassDef) and "Service" in set(_names(node.bases))


def _names(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                yield inner.id
            elif isinstance(inner, ast.Attribute):
                yield inner.attr
