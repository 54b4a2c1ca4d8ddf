"""The pipeline's conformance vectors: reading them, naming them in tests, and checking a call against one."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from pipeline_kit import Recorder, Result, assert_lossless_and_frozen, code

FILE = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "pipeline.jsonl"
KEYS = {
    "meta": lambda result: result.meta is not None,
    "additionalContexts": lambda result: len(result.additional_contexts) > 0,
    "concludesTurn": lambda result: not result.is_error and result.concludes_turn,
}


@frozen
class Vector:
    """One scenario in words and what was observed when the original ran it."""

    id: str
    scenario: str
    observed: dict[str, Any]

    def check(
        self,
        rec: Recorder,
        result: Result,
        *,
        code: str | None = None,
        finalized: str | None = None,
    ) -> None:
        """Compare a call with what was observed.

        ``code`` is the code that the contract gives where the original gave none; ``finalized`` is the code that the
        finalizer saw, where it is not the same.
        """
        ours = self._code(code)
        assert result.is_error is self.observed["isError"]
        assert code_of(result) == ours
        self._check_members(result)
        self.check_stages(rec.stages, finalized if finalized is not None else ours)
        if "observerResultIsError" in self.observed:
            assert [seen.is_error for seen in rec.results] == [self.observed["observerResultIsError"]]
            assert rec.results[0] is result

    def check_stages(self, stages: Iterable[str], code: str | None = None) -> None:
        """Compare the stages in order, and their counts; ``code`` stands for a code that the original left out."""
        expected = [_with_code(stage, code) for stage in self.observed["stages"]]
        stages = list(stages)
        assert stages == expected
        assert Counter(_kind(stage) for stage in stages) == self.observed["counts"]

    def _code(self, ours: str | None) -> str | None:
        theirs: str | None = self.observed["code"]
        assert ours is None or theirs is None, "a code of the original is not to be replaced"
        return ours if ours is not None else theirs

    def _check_members(self, result: Result) -> None:
        assert self.observed["deepFrozen"] is True
        assert_lossless_and_frozen(result)
        for key, present in KEYS.items():
            assert present(result) is (key in self.observed["keys"]), key
        if "value" in self.observed:
            assert result.value == self.observed["value"]


def code_of(result: Result) -> str | None:
    return code(result)


def vectors(*ids: str) -> pytest.MarkDecorator:
    """Run a test once for each of these vectors, as the argument ``vector``."""
    return pytest.mark.parametrize("vector", ids, indirect=True)


@cache
def read_vectors() -> dict[str, Vector]:
    """All vectors by id; skips where the checkout has none."""
    if not FILE.exists():
        pytest.skip(f"no conformance vectors beside this checkout (looked for {FILE})")
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines() if line]
    return {row["id"]: Vector(**row) for row in rows}


def _with_code(stage: str, code: str | None) -> str:
    """The stage as the original wrote it, with the code that the contract adds."""
    return stage.replace("isError=true,code=null", f"isError=true,code={code}") if code is not None else stage


def _kind(stage: str) -> str:
    """What a stage is counted as: its name without label or details."""
    return re.split(r"[:(]", stage, maxsplit=1)[0]
