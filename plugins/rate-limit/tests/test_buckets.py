"""What token buckets promise, whatever the calls and the clock do."""

from __future__ import annotations

from dsh_plugin_rate_limit._bucket import Rate
from dsh_plugin_rate_limit._shelf import Shelf
from hypothesis import given
from hypothesis import strategies as st

RATES = st.builds(Rate, st.floats(0.001, 1000), st.integers(1, 50))
STEPS = st.lists(st.floats(0, 100), max_size=60)
CALLS = st.lists(st.tuples(st.integers(0, 30), st.floats(-5, 50)), max_size=80)
JUMPS = st.lists(st.floats(-1000, 1000), max_size=60)
SLACK = 1e-3


@given(rate=RATES, steps=STEPS)
def test_no_more_calls_pass_than_burst_and_rate_allow(rate: Rate, steps: list[float]) -> None:
    now, passed = 0.0, 0
    bucket = rate.full(now)
    for step in steps:
        now += step
        while bucket.wait(now) == 0:
            bucket.take(now)
            passed += 1
            assert passed <= rate.size + now * rate.per_second + SLACK


@given(rate=RATES, steps=STEPS)
def test_whoever_waits_as_long_as_told_passes(rate: Rate, steps: list[float]) -> None:
    now = 0.0
    bucket = rate.full(now)
    for step in steps:
        now += step
        while (wait := bucket.wait(now)) == 0:
            bucket.take(now)
        now += wait
        assert bucket.wait(now) == 0


@given(rate=RATES, jumps=JUMPS)
def test_a_clock_that_jumps_back_grants_nothing(rate: Rate, jumps: list[float]) -> None:
    now, forward, passed = 0.0, 0.0, 0
    bucket = rate.full(now)
    for jump in jumps:
        now += jump
        forward += max(jump, 0.0)
        while bucket.wait(now) == 0:
            bucket.take(now)
            passed += 1
            assert passed <= rate.size + forward * rate.per_second + SLACK


@given(rate=RATES, jumps=JUMPS)
def test_a_clock_that_jumps_back_starves_nobody(rate: Rate, jumps: list[float]) -> None:
    now = 0.0
    bucket = rate.full(now)
    for jump in jumps:
        now += jump
        now += bucket.wait(now)
        assert bucket.wait(now) == 0
        bucket.take(now)


@given(rate=RATES, limit=st.integers(1, 10), calls=CALLS)
def test_a_shelf_never_holds_more_than_its_limit_nor_forgets_a_bucket_in_use(
    rate: Rate, limit: int, calls: list[tuple[int, float]]
) -> None:
    shelf, alone, now = Shelf(rate, limit), Shelf(rate, 10**6), 0.0
    for key, step in calls:
        now += step
        if shelf.wait(key, now).seconds == 0:
            assert alone.wait(key, now).seconds == 0, "a bound must not grant what an unbounded shelf would not"
            shelf.take(key, now)
            alone.take(key, now)
        assert len(shelf) <= limit


@given(rate=RATES, limit=st.integers(1, 5))
def test_a_shelf_without_room_says_when_it_has_some(rate: Rate, limit: int) -> None:
    shelf = Shelf(rate, limit)
    for key in range(limit):
        shelf.take(key, 0)
    wait = shelf.wait("late", 0)
    assert wait.no_room
    assert 0 < wait.seconds <= rate.size / rate.per_second
    assert shelf.wait("late", wait.seconds * 1.001).seconds == 0


@given(rate=RATES, back=st.floats(0, 1e6))
def test_a_shelf_without_room_starves_nobody_when_the_clock_jumps_back(rate: Rate, back: float) -> None:
    shelf = Shelf(rate, 1)
    shelf.take("early", 0)
    assert shelf.wait("late", 0).no_room
    assert shelf.wait("late", -back).seconds <= rate.size / rate.per_second + SLACK


def test_buckets_that_are_full_again_are_swept_out_as_the_shelf_grows() -> None:
    shelf = Shelf(Rate(1, 1), 10**6)
    for key in range(10_000):
        shelf.take(key, float(key))
        assert len(shelf) <= 128
