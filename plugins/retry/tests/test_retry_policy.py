"""What the decisions promise for every config."""

from __future__ import annotations

from typing import Any

from dsh_hookspecs import ToolErrorInfo, ToolExecutionFailure, ToolFailure
from dsh_plugin_retry import NEVER_RETRIED, Config, build_policy
from hypothesis import given
from hypothesis import strategies as st

CONFIGS = st.builds(
    Config,
    attempts=st.integers(1, 100),
    max_time=st.floats(0.001, 1e6),
    delay=st.floats(0, 1e6),
    factor=st.floats(1, 100),
    max_delay=st.floats(0, 1e6),
    jitter=st.floats(0, 1),
)
CHANCES = st.floats(0, 1)


def failure(code: str | None) -> ToolExecutionFailure:
    return ToolExecutionFailure(ToolFailure("no", ToolErrorInfo("Error", code)))


@given(config=CONFIGS, attempt=st.integers(1, 100), elapsed=st.floats(0, 1e7), chance=CHANCES)
def test_a_wait_lies_within_its_cap_and_the_budget(config: Config, attempt: int, elapsed: float, chance: float) -> None:
    wait = build_policy(config).wait(attempt, elapsed, chance)
    if wait is not None:
        assert attempt < config.attempts
        assert 0 <= wait <= config.max_delay
        assert elapsed + wait < config.max_time


@given(config=CONFIGS, chance=CHANCES)
def test_attempts_are_finite_and_never_more_than_the_config_says(config: Config, chance: float) -> None:
    policy = build_policy(config)
    attempts, elapsed = 1, 0.0
    while (wait := policy.wait(attempts, elapsed, chance)) is not None:
        attempts, elapsed = attempts + 1, elapsed + wait
    assert attempts <= config.attempts


@given(config=CONFIGS, attempt=st.integers(1, 99), chance=CHANCES)
def test_jitter_takes_off_at_most_its_part(config: Config, attempt: int, chance: float) -> None:
    policy = build_policy(config)
    whole, wait = policy.wait(attempt, 0, 0), policy.wait(attempt, 0, chance)
    if whole is not None and wait is not None:
        assert whole * (1 - config.jitter) <= wait <= whole


@given(code=st.sampled_from(sorted(NEVER_RETRIED)))
def test_codes_that_are_final_are_never_retried(code: str) -> None:
    assert not build_policy(Config()).retries(failure(code))


@given(code=st.none() | st.sampled_from(["TOOL_TIMEOUT", "BUSY", "OTHER"]), without_code=st.booleans())
def test_a_failure_is_retried_exactly_where_its_code_is_named(code: Any, without_code: bool) -> None:
    policy = build_policy(Config(codes=("BUSY",), without_code=without_code))
    assert policy.retries(failure(code)) is (code == "BUSY" or (code is None and without_code))
