"""The ``[host]`` table: one field per setting, each with its own check.

To add a setting, add a field; the check, the default, the error messages and ``config show`` follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

from attrs import Attribute, field, fields, frozen

MAX_SECONDS = 86_400.0
MAX_NESTING = 100_000
MAX_THREADS = 10_000
Presentation: TypeAlias = Literal["native", "code", "both"]
PRESENTATIONS: tuple[Presentation, ...] = get_args(Presentation)
ApprovalPolicy: TypeAlias = Literal["ask", "never"]
APPROVAL_POLICIES: tuple[ApprovalPolicy, ...] = get_args(ApprovalPolicy)


class UnexpectedValueError(Exception):
    """What was expected instead; the message completes 'expected ...'."""


def _setting(check: Callable[[object], object], default: object) -> Any:
    return field(default=default, metadata={"check": check})


def seconds(value: object) -> float:
    """A number of seconds, zero included."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS:
        return float(value)
    raise UnexpectedValueError(f"a number of seconds from 0 to {MAX_SECONDS:.0f}")


def seconds_or_off(value: object) -> float | None:
    """A number of seconds; ``0`` and ``false`` switch the limit off."""
    try:
        return None if value is False else seconds(value) or None
    except UnexpectedValueError as error:
        raise UnexpectedValueError(f"{error}; 0 or false switches it off") from None


def count_up_to(most: int) -> Callable[[object], int]:
    """A whole number from 1 to ``most``."""

    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return value
        raise UnexpectedValueError(f"a whole number from 1 to {most}")

    return check


def one_of(*words: str) -> Callable[[object], str]:
    """One of some words."""

    def check(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise UnexpectedValueError("one of " + ", ".join(f"'{word}'" for word in words))

    return check


def switch(value: object) -> bool:
    """``true`` or ``false``."""
    if isinstance(value, bool):
        return value
    raise UnexpectedValueError("true or false")


@frozen(kw_only=True)
class HostSettings:
    """How the host itself behaves. Times are in seconds; a limit that is switched off is ``None``."""

    policy_timeout: float | None = _setting(seconds_or_off, 30.0)
    gate_timeout: float = _setting(seconds, 10.0)
    drain_timeout: float = _setting(seconds, 30.0)
    teardown_timeout: float = _setting(seconds, 10.0)
    max_depth: int = _setting(count_up_to(MAX_NESTING), 512)
    threads: int = _setting(count_up_to(MAX_THREADS), 40)
    presentation: Presentation = _setting(one_of(*PRESENTATIONS), "native")  # noqa: RUF009 - a field like the others
    approval: ApprovalPolicy = _setting(one_of(*APPROVAL_POLICIES), "ask")  # noqa: RUF009
    approval_timeout: float | None = _setting(seconds_or_off, 300.0)
    reload: bool = _setting(switch, False)


def known_settings() -> dict[str, Attribute[Any]]:
    """The settings by name."""
    return {attribute.name: attribute for attribute in fields(HostSettings)}


def check_setting(name: str, value: object) -> object:
    """The value as the host uses it; raises ``UnexpectedValueError`` when it is not one."""
    return known_settings()[name].metadata["check"](value)
