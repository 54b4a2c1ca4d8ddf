"""The README's config and programs do what it says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsh_runtime import open_host

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.trio
async def test_a_host_takes_the_config_and_masks_by_it() -> None:
    async with open_host(tomllib.loads(blocks("toml")[0])) as host:
        redact: Any = host.ctx.get("redact")
        assert redact.text("ticket ABC-123456, licensePlate=B1") == (
            "ticket [redacted: ticket], licensePlate=[redacted: secret]"
        )


def test_the_program_gives_what_its_comments_say() -> None:
    program = blocks("python")[0]
    names: dict[str, Any] = {}
    exec(program, names)
    shown = re.findall(r"^(redactor\..*?)  # (.*)$", program, re.MULTILINE)
    assert len(shown) == 2
    for expression, expected in shown:
        assert repr(eval(expression, names)) == expected


@pytest.mark.trio
@pytest.mark.parametrize("loaded", [True, False])
async def test_a_plugin_may_use_it_where_it_is_loaded(loaded: bool, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "writer"}
    exec(blocks("python")[1], names)
    writer = SimpleNamespace(name="writer", inject=names["inject"], apply=names["apply"])
    rows = [{"id": "redact", "use": "redact"}] if loaded else []
    async with open_host({"plugin": rows}, plugins=[writer]):
        pass
    assert ("hunter2" in capsys.readouterr().out) is not loaded


def test_every_kind_of_mask_is_in_the_table() -> None:
    from dsh_plugin_redact import Config

    with pytest.raises(ValueError, match="there are: ") as raised:
        Config(without=("none",))
    kinds = str(raised.value).partition("there are: ")[2].split(", ")
    rows = [line.split("|")[1] for line in README.splitlines() if line.startswith("| `")]
    assert set(kinds) == set(re.findall(r"`([a-z-]+)`", "".join(rows)))
