"""What the plugin drags in, and how it is found."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import dsh_plugin_otel


def test_importing_it_loads_neither_the_host_nor_an_event_loop_nor_the_sdk() -> None:
    program = "import sys, dsh_plugin_otel; print(*{'dsh_runtime', 'trio', 'opentelemetry.sdk'} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_it_is_found_by_its_name() -> None:
    [entry] = entry_points(group="dsh.plugins", name="otel")
    assert entry.load() is dsh_plugin_otel
    assert dsh_plugin_otel.name == "otel"
