"""How the plugin is found."""

from __future__ import annotations

from importlib.metadata import entry_points

import dsh_plugin_greet


def test_it_is_found_by_its_name() -> None:
    [entry] = entry_points(group="dsh.plugins", name="greet")
    assert entry.load() is dsh_plugin_greet
    assert dsh_plugin_greet.name == "greet"
