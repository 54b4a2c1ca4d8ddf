"""Every check fails for a plugin that is wrong in its way, and says what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from wrong_plugins import (
    BreaksRecord,
    Chokes,
    Deaf,
    FailsToUndo,
    LeavesTask,
    LeavesThread,
    Liar,
    OnlyOnce,
    Overrules,
    RegistersForOthers,
    SwallowsFailures,
)

from dsh_runtime.testing import checks
from dsh_runtime.testing.checks import Subject

WRONG: list[tuple[Any, Any, Any, str]] = [
    (checks.a_denied_body_never_starts, Overrules, (), "was denied behind the plugin"),
    (checks.policy_that_fails_behind_it_fails_the_call, SwallowsFailures, (), "a policy behind the plugin raises"),
    (checks.its_policy_has_an_answer_for_every_call, Chokes, (), "the plugin's policy failed"),
    (checks.unloading_leaves_nothing, LeavesThread, (), "left-behind"),
    (checks.unloading_leaves_nothing, LeavesTask, (), "left-behind"),
    (checks.unloading_leaves_nothing, FailsToUndo, (), "cannot let go"),
    (checks.its_order_is_respected, RegistersForOthers, (), "and not for itself"),
    (checks.it_survives_reload, OnlyOnce, (), "cannot be reloaded"),
    (checks.it_survives_cancellation, Deaf, (("deaf", {}),), "had not come to rest"),
    (checks.its_tools_keep_to_their_schemas, Liar, (), "breaks its own schema"),
    (checks.denied_calls_are_on_record, BreaksRecord, (), "not on record as denied"),
]


@pytest.mark.parametrize(
    ("check", "wrong", "calls", "words"), WRONG, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_check_fails_for_a_plugin_that_is_wrong(
    check: Any, wrong: Any, calls: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "PATIENCE", 1.0)
    plugin = wrong()
    with pytest.raises(BaseException) as caught:
        trio.run(check, Subject(plugin, calls=calls))
    assert words in str(sole(caught.value))
    assert isinstance(sole(caught.value), AssertionError)
    getattr(plugin, "end", None) and plugin.end.set()


def sole(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
