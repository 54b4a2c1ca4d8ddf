"""The README's config and program do what it says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

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
    compared = 0
    for line in block("python").splitlines():
        call, _, comment = line.partition("  # ")
        if not comment:
            exec(line, names)
            continue
        answer, ends = eval(call, names), comment.strip('"').split("…")
        assert str(answer).startswith(ends[0].strip())
        assert str(answer).endswith(ends[-1].strip())
        compared += 1
    assert compared == 4
