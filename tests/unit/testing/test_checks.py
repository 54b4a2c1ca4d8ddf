"""Every check fails for a plugin that is wrong in its way, and says what is wrong; what is right passes all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dsh_plugin_greet
import dsh_plugin_permission_gate
import pytest
import wrong_plugins as wrong

from dsh_runtime.testing import Denial, PluginChecks, call, check_plugin, provide
from dsh_runtime.testing.checks import CHECKS, Subject
from dsh_runtime.testing.checks.subject import PATIENCE
from dsh_runtime.testing.conformance import run_check

SECRET = call("read", path="secret")
JUDGE = (provide("judge", wrong.Judge()),)
CASES: list[tuple[str, Callable[[], Any], dict[str, Any], str]] = [
    ("a_denied_body_never_starts", wrong.Overrules, {}, "a policy behind the plugin denies, and the call probe("),
    ("a_denied_body_never_starts", wrong.SaysItDenies, {"denies": [SECRET]}, "is said to deny, and the call read("),
    ("policy_that_fails_behind_it_fails_the_call", wrong.SwallowsFailures, {}, "a policy behind the plugin raises"),
    ("its_policy_has_an_answer_for_every_call", wrong.Chokes, {}, "for the call probe({}) the plugin's policy failed"),
    ("it_fails_closed_when_it_raises", wrong.FailsOpen, {"denies": [SECRET]}, "raises at wrong_plugins.py:"),
    ("it_fails_closed_when_it_raises", wrong.Forgives, {}, "on 'tools/pre-execute' raises, and the call probe("),
    ("it_fails_closed_when_it_hangs", wrong.Forgives, {}, "on 'tools/pre-execute' hangs, and the call probe("),
    ("it_fails_closed_when_it_answers_rubbish", wrong.Forgives, {}, "on 'tools/pre-execute' answers rubbish, and"),
    ("it_fails_closed_when_it_raises", wrong.Optimist, {"denies": [SECRET]}, "the service 'judge' raises"),
    ("it_fails_closed_when_it_hangs", wrong.Impatient, {"denies": [SECRET]}, "the service 'judge' hangs"),
    ("it_fails_closed_when_it_answers_rubbish", wrong.Credulous, {"denies": [SECRET]}, "'judge' answers nothing"),
    ("unloading_leaves_nothing", wrong.LeavesThread, {}, "the thread 'left-behind'"),
    ("unloading_leaves_nothing", wrong.leaves_task, {}, "the task 'left-behind'"),
    ("unloading_leaves_nothing", wrong.FailsToUndo, {}, "cannot let go"),
    ("unloading_leaves_nothing", wrong.leaves_tool, {}, "tool 'left0', registered for 'root'"),
    ("unloading_leaves_nothing", wrong.leaves_service, {}, "the service 'left_behind'"),
    ("unloading_leaves_nothing", wrong.leaves_temporary_file, {}, "left-behind"),
    ("unloading_leaves_nothing", wrong.leaves_open_file, {}, "wrong_plugins.py (descriptor"),
    ("unloading_leaves_nothing", wrong.leaves_process, {}, "(sleep 60)"),
    ("unloading_leaves_nothing", wrong.leaves_log_handler, {}, "of the logger 'left-behind'"),
    ("unloading_leaves_nothing", wrong.leaves_variable, {}, "the environment variable LEFT_BEHIND"),
    ("unloading_leaves_nothing", wrong.leaves_import_path, {}, "the import path /left-behind"),
    ("unloading_leaves_nothing", wrong.leaves_module, {}, "the module 'left_behind' in sys.modules"),
    ("unloading_leaves_nothing", wrong.leaves_other_module, {}, "another module, or none, for 'colorsys'"),
    ("unloading_leaves_nothing", wrong.leaves_signal_handler, {}, "another handler of the signal SIGUSR2"),
    ("unloading_leaves_nothing", wrong.leaves_other_print, {}, "another hook of Python builtins.print"),
    ("unloading_leaves_nothing", wrong.leaves_folder, {}, "the working directory /"),
    ("its_order_is_respected", wrong.RegistersForOthers, {}, "a listener of 'tools/post-execute' for the host"),
    ("its_order_is_respected", wrong.MountsBeside, {}, "mounts the plugin 'chokes' beside itself"),
    ("it_survives_reload", wrong.OnlyOnce, {}, "already applied"),
    ("it_survives_reload", wrong.ForgetsItsTool, {"calls": [call("once")]}, "came out as a success, and after it as"),
    ("it_survives_reload", wrong.MovesForward, {}, "before the reload the listeners were"),
    ("it_survives_cancellation", wrong.Deaf, {"calls": [call("deaf")]}, "which was aborted, had not come to rest"),
    ("its_tools_keep_to_their_schemas", wrong.lies, {}, "breaks its own schema"),
    ("its_tools_keep_to_their_schemas", wrong.slips, {}, "it raises KeyError"),
    ("its_tools_keep_to_their_schemas", wrong.fails, {"calls": [call("tool")]}, "which is said to succeed"),
    ("its_tools_keep_to_their_schemas", wrong.shows_two_views, {}, "gives two views"),
    ("denied_calls_are_on_record", wrong.BreaksRecord, {}, "not on record as denied"),
]


@pytest.mark.parametrize(
    ("check", "make", "more", "words"), CASES, ids=[f"{check}-{make.__name__}" for check, make, *_ in CASES]
)
def test_a_check_fails_for_a_plugin_that_is_wrong(
    check: str, make: Callable[[], Any], more: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PATIENCE, "grace", 0.1)
    if make is wrong.Deaf:
        monkeypatch.setattr(PATIENCE, "seconds", 0.3)
    plugin = make()
    companions = JUDGE if isinstance(plugin, wrong.AsksJudge) else ()
    try:
        with pytest.raises(AssertionError) as caught:
            run_check(CHECKS[check], Subject(plugin, companions, **more))
    finally:
        for tidy in (getattr(plugin, "tidy", None), plugin.end.set if isinstance(plugin, wrong.LeavesThread) else None):
            if tidy is not None:
                tidy()
    assert words in str(caught.value)


def test_every_check_has_a_plugin_that_fails_it() -> None:
    assert {check for check, *_ in CASES} == set(CHECKS)


def test_every_check_is_a_test() -> None:
    tests = {name.removeprefix("test_") for name in dir(PluginChecks) if name.startswith("test_")}
    assert tests == set(CHECKS)


class TestAPolicyThatIsRight(PluginChecks):
    """Asks a service, and takes nothing but a clear word for a yes."""

    class Careful(wrong.AsksJudge):
        async def forbidden(self, tool: str) -> bool:
            return await self.ctx.judge.forbids(tool) is not False

    class Court:
        async def forbids(self, tool: str) -> bool:
            return tool == "read"

    plugin = Careful()
    companions = (provide("judge", Court()),)
    denies = (SECRET,)


def test_a_plugin_is_checked_without_pytest() -> None:
    check_plugin(dsh_plugin_greet, calls=[call("greet", name="Ada")])


def test_all_failures_are_told_at_once() -> None:
    with pytest.raises(AssertionError) as caught:
        check_plugin(wrong.Chokes())
    text = str(caught.value)
    assert f"of {len(CHECKS)} checks fail" in text
    assert "its_policy_has_an_answer_for_every_call: for the call probe({})" in text


def test_what_a_check_is_exempt_from_is_a_check() -> None:
    with pytest.raises(AssertionError, match="exempt names no check: no_such_check"):
        check_plugin(Denial(), exempt={"no_such_check": "why not"})


def test_an_exempt_check_is_skipped_with_its_reason() -> None:
    class Exempt(PluginChecks):
        plugin = wrong.Chokes()
        exempt = {"its_policy_has_an_answer_for_every_call": "it is known"}  # noqa: RUF012

    with pytest.raises(pytest.skip.Exception, match="it is known"):
        Exempt().test_its_policy_has_an_answer_for_every_call()


def test_checks_without_a_plugin_say_so() -> None:
    class Nameless(PluginChecks):
        pass

    with pytest.raises(AssertionError, match="Nameless names no plugin"):
        Nameless().test_unloading_leaves_nothing()


def test_a_gate_that_denies_by_config_is_checked_line_by_line() -> None:
    rules = [{"action": "deny", "tools": ["read"], "reason": "not this"}]
    gate = (dsh_plugin_permission_gate, {"default": "allow", "rules": rules})
    for name in ("it_fails_closed_when_it_raises", "denied_calls_are_on_record"):
        run_check(CHECKS[name], Subject(gate, denies=[SECRET]))
