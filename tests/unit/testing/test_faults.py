"""Faults in chosen lines: each line of some files once, none elsewhere, and none where Python itself has none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsh_runtime.testing.checks.faults import Fault
from dsh_runtime.testing.checks.tampering import Sabotage

CODE = """
import contextlib

done = []

@contextlib.contextmanager
def scope():
    done.append("entered")
    try:
        yield
    finally:
        done.append("left")

def run(other):
    with scope():
        first = 1
        other()
    return first
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Any], Any]:
    """A function of a file of its own, and what it has done."""
    file = tmp_path / "code.py"
    file.write_text(CODE)
    namespace: dict[str, Any] = {}
    exec(compile(CODE, str(file), "exec"), namespace)
    run: Callable[[Any], Any] = namespace["run"]
    run.__dict__.update(done=namespace["done"], roots=(str(file),))
    return run


def elsewhere() -> None:
    """Code that is nobody's."""


def test_every_line_fails_once_and_what_was_entered_is_left(run: Any) -> None:
    with Fault(run.roots, None) as counted:
        run(elsewhere)
    places = set()
    for at in range(1, counted.lines + 1):
        run.done.clear()
        with Fault(run.roots, at) as fault, pytest.raises(Sabotage):
            run(elsewhere)
        places.add(fault.place)
        if "entered" in run.done and fault.place != "code.py:12":
            assert run.done[-1] == "left"
    assert {f"code.py:{line}" for line in (8, 10, 12, 16, 17, 18)} == places


def test_code_of_others_does_not_fail(run: Any) -> None:
    with Fault(("/nowhere/",), 1) as fault:
        run(elsewhere)
    assert (fault.lines, fault.place) == (0, None)


def test_whoever_traced_before_traces_again(run: Any) -> None:
    before = sys.gettrace()
    with Fault(run.roots, 1), pytest.raises(Sabotage):
        run(elsewhere)
    assert sys.gettrace() is before
