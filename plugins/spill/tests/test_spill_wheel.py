"""What the plugin drags in, and how it is found."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import dsh_plugin_spill


def test_importing_it_does_not_load_the_host() -> None:
    program = "import sys, dsh_plugin_spill; print(*{'dsh_runtime'} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_it_is_found_by_its_name() -> None:
    [entry] = entry_points(group="dsh.plugins", name="spill")
    assert entry.load() is dsh_plugin_spill
    assert dsh_plugin_spill.name == "spill"
