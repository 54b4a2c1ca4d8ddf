"""The README's config and program do what it says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from dsh_plugin_retry import NEVER_RETRIED, Config

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


def test_the_program_gives_what_its_comments_say() -> None:
    names: dict[str, Any] = {}
    exec(block("python"), names)
    for line in block("python").splitlines():
        call, _, comment = line.partition("  # ")
        if comment:
            assert str(eval(call, names)) == comment.partition(":")[0]


def test_the_defaults_are_those_that_it_names() -> None:
    text = " ".join(README.split())
    named = re.search(r"The defaults are (.*?)\. The globs", text)
    assert named is not None
    defaults = tomllib.loads("\n".join(re.findall(r"`(.*?)`", named[1])))
    config = Config()
    assert {key: getattr(config, key) for key in defaults} == {
        key: tuple(value) if isinstance(value, list) else value for key, value in defaults.items()
    }


def test_every_code_that_is_never_retried_is_named() -> None:
    assert [code for code in NEVER_RETRIED if code not in README and not code.startswith("APPROVAL_")] == []
