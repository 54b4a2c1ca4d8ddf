"""What every plugin keeps to, each as a check of one plugin. A check that fails says what is wrong, and where.

A check opens hosts of its own, with the plugin, its companions, and what the check needs.

Layering, lowest first: ``subject``; ``deciding``, ``ending``, ``process``, ``tampering``; ``faults``;
``failing``, ``keeping``, ``leaving``, ``order``, ``surviving``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from dsh_runtime.testing.checks.deciding import (
    a_denied_body_never_starts,
    its_policy_has_an_answer_for_every_call,
    policy_that_fails_behind_it_fails_the_call,
)
from dsh_runtime.testing.checks.failing import (
    it_fails_closed_when_it_answers_rubbish,
    it_fails_closed_when_it_hangs,
    it_fails_closed_when_it_raises,
)
from dsh_runtime.testing.checks.keeping import denied_calls_are_on_record, its_tools_keep_to_their_schemas
from dsh_runtime.testing.checks.leaving import unloading_leaves_nothing
from dsh_runtime.testing.checks.order import its_order_is_respected
from dsh_runtime.testing.checks.subject import Subject
from dsh_runtime.testing.checks.surviving import it_survives_cancellation, it_survives_reload

__all__ = ["CHECKS", "Check", "Subject"]

Check: TypeAlias = Callable[[Subject], Awaitable[None]]

#: Every check by its name.
CHECKS: Final[Mapping[str, Check]] = {
    check.__name__: check
    for check in (
        a_denied_body_never_starts,
        policy_that_fails_behind_it_fails_the_call,
        its_policy_has_an_answer_for_every_call,
        it_fails_closed_when_it_raises,
        it_fails_closed_when_it_hangs,
        it_fails_closed_when_it_answers_rubbish,
        unloading_leaves_nothing,
        its_order_is_respected,
        it_survives_reload,
        it_survives_cancellation,
        its_tools_keep_to_their_schemas,
        denied_calls_are_on_record,
    )
}
