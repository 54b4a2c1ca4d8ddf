"""The layering that the package's docstring draws is the one that the modules keep."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dsh_runtime.loader

LAYERS = [line.split() for line in (dsh_runtime.loader.__doc__ or "").splitlines() if line.startswith("    ")]
HEIGHT = {module: -index for index, layer in enumerate(LAYERS) for module in layer}


@pytest.mark.parametrize("module", HEIGHT)
def test_a_module_imports_only_from_the_layers_below_its_own(module: str) -> None:
    source = (Path(str(dsh_runtime.loader.__file__)).parent / f"{module}.py").read_text("utf-8")
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.level]
    assert [node.module for node in imports if HEIGHT.get(str(node.module), 1) >= HEIGHT[module]] == []


@pytest.mark.parametrize("module", ["load", "resolve", "plugin_config", "show", "find"])
def test_nothing_heavy_is_imported_before_it_is_needed(module: str) -> None:
    heavy = ["cattrs", "fastjsonschema", "importlib.metadata", "tomllib", "difflib"]
    program = f"import sys, dsh_runtime.loader.{module}; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
