"""The README's config and program do what it says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from dsh_hookspecs import Allow, Deny
from dsh_plugin_permission_gate import Config, RuleConfig, build_policy, decide

from dsh_runtime import open_host

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.trio
async def test_a_host_takes_the_config() -> None:
    async with open_host(tomllib.loads(block("toml"))):
        pass


@pytest.mark.parametrize(
    ("tool", "arguments", "decision"),
    [
        ("fs_read", {"path": "src/a.py"}, "Allow"),
        ("fs_read", {"path": "lib/../src/a.py"}, "Ask"),
        ("fs_read", {"path": "src/.env"}, "Deny"),
        ("greet", {"name": ".env.local"}, "Deny"),
        ("greet", {"name": "Ada"}, "Ask"),
        ("sh", {"command": "cd / && rm -r x"}, "Deny"),
        ("sh", {"command": "ls"}, "Ask"),
    ],
)
def test_the_config_decides(tool: str, arguments: Any, decision: str) -> None:
    [row] = tomllib.loads(block("toml"))["plugin"]
    rules = tuple(RuleConfig(**rule) for rule in row["config"]["rules"])
    policy = build_policy(Config(row["config"]["default"], rules))
    assert type(decide(policy, tool, arguments)).__name__ == decision


def test_the_program_decides_what_its_comments_say() -> None:
    names: dict[str, Any] = {}
    exec(block("python"), names)
    assert decide(names["policy"], "fs_read", {"path": "src/a.py"}) == Allow()
    assert isinstance(decide(names["policy"], "fs_read", {"path": "src/../.env"}), Deny)
