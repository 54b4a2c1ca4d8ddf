"""The checks as tests that pytest collects, and as one function.

class TestGreet(PluginChecks):
    plugin = dsh_plugin_greet
    calls = (call("greet", name="Ada"),)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import trio

from dsh_runtime.testing.calls import CallLike
from dsh_runtime.testing.checks import CHECKS, Check, Subject
from dsh_runtime.testing.trial import PluginLike
from dsh_runtime.tools.failures import sole


class PluginChecks:
    """A subclass names its plugin; every check is a test of its own.

    ``plugin`` is a plugin object or module, a pair of one and its config, or the name of an installed one;
    ``companions`` are plugins that it needs; ``calls`` are calls that succeed, ``denies`` calls that the plugin denies
    after these; ``never_generate`` names tools that are not to be called with generated arguments; ``exempt`` gives the
    reason why a check, by its name without ``test_``, does not apply. :meth:`subject` may make all of it anew for each
    check.
    """

    # No ClassVar: a subclass that says ``calls = …`` is right for mypy, too.
    plugin: PluginLike = None
    companions: tuple[PluginLike, ...] = ()
    calls: tuple[CallLike, ...] = ()
    denies: tuple[CallLike, ...] = ()
    never_generate: Collection[str] = ()
    exempt: Mapping[str, str] = {}  # never changed

    def subject(self) -> Subject:
        """What is checked; called for each check."""
        if self.plugin is None:
            raise AssertionError(f"{type(self).__name__} names no plugin; give it plugin = … or subject()")
        return Subject(self.plugin, self.companions, self.calls, self.denies, self.never_generate)

    def test_a_denied_body_never_starts(self) -> None:
        """What is denied in front of the plugin, behind it, by a guard or by itself does not begin."""
        self._check("a_denied_body_never_starts")

    def test_policy_that_fails_behind_it_fails_the_call(self) -> None:
        """A policy behind the plugin that fails is not undone by it."""
        self._check("policy_that_fails_behind_it_fails_the_call")

    def test_its_policy_has_an_answer_for_every_call(self) -> None:
        """No call makes its own policy fail."""
        self._check("its_policy_has_an_answer_for_every_call")

    def test_it_fails_closed_when_it_raises(self) -> None:
        """Nothing gets through that would not have else."""
        self._check("it_fails_closed_when_it_raises")

    def test_it_fails_closed_when_it_hangs(self) -> None:
        """Nothing gets through that would not have else."""
        self._check("it_fails_closed_when_it_hangs")

    def test_it_fails_closed_when_it_answers_rubbish(self) -> None:
        """Nothing gets through that would not have else."""
        self._check("it_fails_closed_when_it_answers_rubbish")

    def test_unloading_leaves_nothing(self) -> None:
        """Nothing outlives the plugin."""
        self._check("unloading_leaves_nothing")

    def test_its_order_is_respected(self) -> None:
        """What it registers is its own, and stands where it was put."""
        self._check("its_order_is_respected")

    def test_it_survives_reload(self) -> None:
        """It works after a reload as before."""
        self._check("it_survives_reload")

    def test_it_survives_cancellation(self) -> None:
        """An aborted or cancelled call comes to rest."""
        self._check("it_survives_cancellation")

    def test_its_tools_keep_to_their_schemas(self) -> None:
        """Arguments and outputs are what the tools declare."""
        self._check("its_tools_keep_to_their_schemas")

    def test_denied_calls_are_on_record(self) -> None:
        """A denied call stands in the log."""
        self._check("denied_calls_are_on_record")

    def _check(self, name: str) -> None:
        __tracebackhide__ = True
        _all_known(self.exempt)
        if name in self.exempt:
            import pytest

            pytest.skip(self.exempt[name])
        run_check(CHECKS[name], self.subject())


def _all_known(exempt: Iterable[str]) -> None:
    unknown = sorted(set(exempt) - CHECKS.keys())
    if unknown:
        raise AssertionError(f"exempt names no check: {', '.join(unknown)}; the checks are {', '.join(CHECKS)}")


def run_check(check: Check, subject: Subject) -> None:
    """Run a check on its own; the failure itself comes out, not the groups around it."""
    __tracebackhide__ = True
    try:
        trio.run(check, subject)
    except BaseExceptionGroup as group:
        raise sole(group) from None


def check_plugin(
    plugin: PluginLike,
    *,
    companions: Iterable[PluginLike] = (),
    calls: Iterable[CallLike] = (),
    denies: Iterable[CallLike] = (),
    never_generate: Iterable[str] = (),
    exempt: Mapping[str, str] | None = None,
) -> None:
    """Run every check of a plugin, for whoever has no pytest, and raise one error that names all that fail.

    The parameters are the attributes of :class:`PluginChecks`.
    """
    _all_known(exempt or ())
    subject = Subject(plugin, companions, calls, denies, never_generate)
    failed = []
    for name, check in CHECKS.items():
        if exempt is None or name not in exempt:
            try:
                run_check(check, subject)
            except AssertionError as error:
                failed.append(f"{name}: {error}")
    if failed:
        raise AssertionError("\n".join([f"{len(failed)} of {len(CHECKS)} checks fail:", *failed]))
