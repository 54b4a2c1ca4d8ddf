"""What the packages offer, what importing them costs, and who imports what of whom."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import dsh_hookspecs
import pytest

import dsh_runtime

ROOT = Path(__file__).resolve().parents[2]
PLUGIN_FILES = sorted(ROOT.glob("plugins/*/src/**/*.py"))
PLUGIN_PACKAGES = sorted(file.parent.name for file in ROOT.glob("plugins/*/src/*/__init__.py"))
HOST_PACKAGES = ("dsh_runtime", "dsh_hookspecs")
INSTALLED = os.environ.get("DSH_TEST_INSTALLED") == "1"

PROMISED = re.findall(
    r"\w+",
    """
    AbortController AbortSignal Accept Allow Ask Block Context Deny Fiber HarnessError JsonSchemaError Service
    ToolArgsError ToolDefinition ToolErrorInfo ToolExecutionFailure ToolExecutionInput ToolExecutionSuccess ToolFailure
    ToolNotFoundError ToolOutput ToolOutputError assert_object_json_schema assert_supported_json_schema define_tool
    hookimpl hookspec open_host parameter_spec_to_json_schema snapshot_json thaw tool validate_args
    validate_json_schema_value value_spec_to_json_schema
    """,
)


def in_order(names: list[str]) -> list[str]:
    """The order of ruff's rule for ``__all__``: constants, classes, then the rest."""
    return sorted(names, key=lambda name: (0 if name.isupper() else 1 if name[0].isupper() else 2, name))


@pytest.mark.parametrize("package", [dsh_runtime, dsh_hookspecs], ids=HOST_PACKAGES)
def test_the_public_names_are_sorted_and_there(package: object) -> None:
    """Each name of ``__all__`` once, in order, and importable."""
    names: list[str] = package.__all__  # type: ignore[attr-defined]
    assert names == in_order(list(set(names)))
    assert [name for name in names if not hasattr(package, name)] == []


def test_the_promised_names_are_public() -> None:
    """What the contract names can be imported from ``dsh_runtime``."""
    assert set(PROMISED) - set(dsh_runtime.__all__) == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The lazy table does not hide a misspelling."""
    with pytest.raises(AttributeError, match="no attribute 'open_hots'"):
        dsh_runtime.open_hots  # noqa: B018


def test_checkers_and_the_interpreter_see_the_same_names() -> None:
    """The imports for type checkers, the lazy table and ``__all__`` agree, home by home."""
    tree = ast.parse(Path(str(dsh_runtime.__file__)).read_text("utf-8"))
    [for_checkers] = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in for_checkers.body if isinstance(node, ast.ImportFrom)]
    typed = {alias.name: node.module for node in imports for alias in node.names}
    lazy = {name: home for home, names in dsh_runtime._HOMES.items() for name in names.split()}
    assert typed == lazy
    assert sorted(lazy) == sorted(dsh_runtime.__all__)


def test_importing_the_runtime_imports_nothing_heavy() -> None:
    """A plugin's ``import dsh_runtime`` costs nothing until it uses a name."""
    program = "import sys, dsh_runtime; print([name for name in ('trio', 'cattrs', 'pluggy') if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_importing_the_hook_interface_imports_pluggy_and_attrs_alone() -> None:
    """A policy plugin needs no event loop to be imported."""
    names = ("trio", "cattrs", "dsh_runtime")
    program = f"import sys, dsh_hookspecs; print([name for name in {names} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def imported_by(file: Path) -> Iterator[tuple[str, str | None]]:
    """The modules, and the names of modules, that a file imports."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.module or "", alias.name) for alias in node.names)


def is_private(module: str, name: str | None) -> bool:
    """Whether an import of the host's packages reaches for something that is not public."""
    if module.partition(".")[0] not in HOST_PACKAGES:
        return False
    parts = [*module.split("."), *([name] if name else [])]
    return any(part.startswith("_") and not part.endswith("__") for part in parts)


@pytest.mark.parametrize("file", PLUGIN_FILES, ids=lambda file: str(file.relative_to(ROOT / "plugins")))
def test_a_plugin_imports_no_private_name_of_the_host(file: Path) -> None:
    """First-party plugins are ordinary plugins."""
    assert [(module, name) for module, name in imported_by(file) if is_private(module, name)] == []


def test_the_scan_knows_a_private_import_when_it_sees_one() -> None:
    """Otherwise the test above would hold for anything."""
    assert is_private("dsh_hookspecs._signals", "LinkedSignal")
    assert is_private("dsh_runtime.core", "_secret")
    assert not is_private("dsh_runtime", "tool")
    assert not is_private("dsh_plugin_timeout._budget", "Config")
    assert not is_private("dsh_runtime", "__version__")


def test_imports_run_one_way() -> None:
    """The layers that the packages' docstrings draw, checked by import-linter."""
    pytest.importorskip("importlinter")
    program = Path(sysconfig.get_path("scripts")) / "lint-imports"
    ran = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.skipif(not INSTALLED, reason="the packages under test are those of the checkout")
@pytest.mark.parametrize("package", [*HOST_PACKAGES, *PLUGIN_PACKAGES])
def test_the_installed_package_is_under_test(package: str) -> None:
    """With DSH_TEST_INSTALLED=1 the wheels are tested, not the files beside the tests."""
    place = Path(str(importlib.import_module(package).__file__))
    assert "site-packages" in place.parts
    assert ROOT / package != place.parent
