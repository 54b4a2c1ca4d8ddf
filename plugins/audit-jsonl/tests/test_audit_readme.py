"""The README's config, and the record that it shows."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from audit_kit import Host, records
from dsh_plugin_audit_jsonl import Config

from dsh_runtime import open_host

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.trio
async def test_a_host_takes_the_config_and_writes_records_like_the_one_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_host(tomllib.loads(block("toml"))) as runtime:
        await Host(runtime, tmp_path / "audit.jsonl").call(arguments={"text": "a"})
    [record] = records(tmp_path / "audit.jsonl")
    shown: dict[str, Any] = json.loads(block("json"))
    assert list(record) == list(shown)


def test_the_values_shown_are_the_defaults() -> None:
    [row] = tomllib.loads(block("toml"))["plugin"]
    shown = {key: value for key, value in row["config"].items() if key not in ("path", "arguments")}
    config = Config(Path("audit.jsonl"))
    assert {key: getattr(config, key) for key in shown} == shown
    assert config.arguments is False
