"""What the plugin drags in, and how it is found."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import dsh_plugin_audit_jsonl


def test_importing_it_loads_no_part_of_the_host() -> None:
    program = "import sys, dsh_plugin_audit_jsonl; print(*{'dsh_runtime', 'asyncio', 'cattrs'} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_it_is_found_by_its_name() -> None:
    [entry] = entry_points(group="dsh.plugins", name="audit-jsonl")
    assert entry.load() is dsh_plugin_audit_jsonl
    assert dsh_plugin_audit_jsonl.name == "audit-jsonl"
