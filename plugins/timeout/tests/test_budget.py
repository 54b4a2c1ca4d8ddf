"""How many seconds a call gets: no host runs here."""

from __future__ import annotations

import pytest
from dsh_plugin_timeout import Config, budgets_of


@pytest.mark.parametrize(
    ("tool", "declared", "seconds"),
    [
        ("fs_read", None, 5),
        ("fs_read", 60, 5),
        ("FS_read", None, 30),
        ("sh", None, 30),
        ("sh", 2, 2),
        ("web_fetch", 2, 90),
    ],
)
def test_the_first_override_counts_then_the_tools_own_then_the_default(
    tool: str, declared: float | None, seconds: float
) -> None:
    budgets = budgets_of(Config(default=30, overrides={"fs_read": 5, "fs_*": 7, "web_*": 90}))
    assert budgets.seconds(tool, declared) == seconds


def test_without_a_config_only_the_tools_own_deadline_counts() -> None:
    budgets = budgets_of(Config())
    assert budgets.seconds("sh", 2) == 2
    assert budgets.seconds("sh", None) is None


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_deadline_is_positive_and_finite(seconds: float) -> None:
    with pytest.raises(ValueError, match="positive, finite"):
        Config(default=seconds)
    with pytest.raises(ValueError, match="positive, finite"):
        Config(overrides={"*": seconds})
