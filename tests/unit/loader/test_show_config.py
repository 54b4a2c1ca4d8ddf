"""``config show`` lists every value with its place, and no secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.show import show_config

Write = Callable[[str, str], Path]


def test_every_value_is_shown_with_its_place_and_secrets_are_masked(write: Write) -> None:
    file = write(
        "dsh.toml",
        """[host]
threads = 4
[[plugin]]
id = "a"
use = "./a.py"
[plugin.config]
token = "Bearer ${env:T}"
"odd key" = [1, { day = 2020-01-02, none = [] }]
""",
    )
    shown = [str(value) for value in show_config(load_config(file, environ={"T": "s3cret"}))]
    assert shown[:9] == [
        f'plugin[0].id = "a"  # {file}:4',
        f'plugin[0].use = "./a.py"  # {file}:5',
        "plugin[0].enabled = true",
        "plugin[0].optional = false",
        f"plugin[0].config.token = ***  # {file}:7",
        f'plugin[0].config."odd key"[0] = 1  # {file}:8',
        f'plugin[0].config."odd key"[1].day = 2020-01-02  # {file}:8',
        f'plugin[0].config."odd key"[1].none = []  # {file}:8',
        "host.policy_timeout = 30.0",
    ]
    assert f"host.threads = 4  # {file}:2" in shown


def test_a_timeout_that_is_off_reads_false() -> None:
    shown = [str(value) for value in show_config(load_config({"host": {"policy_timeout": 0}}))]
    assert "host.policy_timeout = false" in shown


SECRET = "\x00s3cret\x00"
templates = st.sampled_from(["${env:T}", "x${env:T}", "${env:T}${env:T}"])
trees = st.recursive(
    templates | st.text(max_size=3).filter(lambda text: "${" not in text) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(st.dictionaries(st.text(max_size=3), trees, max_size=3))
def test_no_secret_is_ever_shown(config: dict[str, object]) -> None:
    loaded = load_config({"plugin": [{"id": "a", "use": "x", "config": config}]}, environ={"T": SECRET})
    text = "\n".join(str(value) for value in show_config(loaded)) + repr(loaded)
    assert "s3cret" not in text
