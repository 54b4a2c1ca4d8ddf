"""The README's config does what it says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from dsh_plugin_repeat_reminder import Config

from dsh_runtime import open_host

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def config_block() -> str:
    found = re.search(r"```toml\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.trio
async def test_a_host_takes_the_config() -> None:
    async with open_host(tomllib.loads(config_block())):
        pass


def test_the_default_advice_is_the_one_that_it_quotes() -> None:
    assert Config().advice in " ".join(README.replace("\n>", " ").split())


def test_the_default_counts_are_the_ones_that_it_names() -> None:
    [row] = tomllib.loads(config_block())["plugin"]
    assert tuple(row["config"]["counts"]) == Config().counts
