"""The checks as tests that pytest collects.

    class TestGreet(PluginChecks):
        plugin = dsh_plugin_greet
        calls = (("greet", {"name": "Ada"}),)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import trio

from dsh_runtime.testing import checks
from dsh_runtime.testing.checks import Subject


class PluginChecks:
    """A subclass names its plugin; every check is a test of its own.

    ``plugin`` is a plugin object or module, a pair of one and its config, or the name of an installed one;
    ``companions`` are plugins that it needs; ``calls`` are calls (tool, arguments) that it is used to;
    ``never_generate`` names tools that are not to be called with generated arguments; ``exempt`` gives the reason why
    a check, by its name without ``test_``, does not apply. :meth:`subject` may make all of it anew for each check.
    """

    # No ClassVar: a subclass that says ``calls = …`` is right for mypy, too.
    plugin: Any = None
    companions: tuple[Any, ...] = ()
    calls: tuple[tuple[str, Any], ...] = ()
    never_generate: Collection[str] = ()
    exempt: Mapping[str, str] = {}  # never changed

    def subject(self) -> Subject:
        """What is checked; called for each check."""
        return Subject(self.plugin, tuple(self.companions), tuple(self.calls), self.never_generate)

    def test_a_denied_body_never_starts(self) -> None:
        """A denial stands, and no body begins."""
        self._check("a_denied_body_never_starts", checks.a_denied_body_never_starts)

    def test_policy_that_fails_behind_it_fails_the_call(self) -> None:
        """A policy behind the plugin that fails is not undone by it."""
        check = checks.policy_that_fails_behind_it_fails_the_call
        self._check("policy_that_fails_behind_it_fails_the_call", check)

    def test_its_policy_has_an_answer_for_every_call(self) -> None:
        """No call makes its own policy fail."""
        self._check("its_policy_has_an_answer_for_every_call", checks.its_policy_has_an_answer_for_every_call)

    def test_unloading_leaves_nothing(self) -> None:
        """Nothing outlives the plugin."""
        self._check("unloading_leaves_nothing", checks.unloading_leaves_nothing)

    def test_its_order_is_respected(self) -> None:
        """What it registers is its own, and stands where it was put."""
        self._check("its_order_is_respected", checks.its_order_is_respected)

    def test_it_survives_reload(self) -> None:
        """It works after a reload as before."""
        self._check("it_survives_reload", checks.it_survives_reload)

    def test_it_survives_cancellation(self) -> None:
        """An aborted call comes to rest."""
        self._check("it_survives_cancellation", checks.it_survives_cancellation)

    def test_its_tools_keep_to_their_schemas(self) -> None:
        """Arguments and outputs are what the tools declare."""
        self._check("its_tools_keep_to_their_schemas", checks.its_tools_keep_to_their_schemas)

    def test_denied_calls_are_on_record(self) -> None:
        """A denied call stands in the log."""
        self._check("denied_calls_are_on_record", checks.denied_calls_are_on_record)

    def _check(self, name: str, check: Callable[[Subject], Awaitable[None]]) -> None:
        if name in self.exempt:
            import pytest

            pytest.skip(self.exempt[name])
        unknown = set(self.exempt) - {each.removeprefix("test_") for each in dir(self) if each.startswith("test_")}
        if unknown:
            raise AssertionError(f"exempt names no check: {', '.join(sorted(unknown))}")
        _run(check, self.subject())


def _run(check: Callable[[Subject], Awaitable[None]], subject: Subject) -> None:
    """Run a check; the failure itself comes out, not the groups around it."""
    try:
        trio.run(check, subject)
    except BaseExceptionGroup as group:
        failed: BaseException = group
        while isinstance(failed, BaseExceptionGroup) and len(failed.exceptions) == 1:
            failed = failed.exceptions[0]
        raise failed from None
