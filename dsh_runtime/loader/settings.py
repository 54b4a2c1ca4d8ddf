"""The ``[host]`` table and those inside it: one field per setting, each with its own check.

To add a setting, add a field; the check, the default, the error messages and ``config show`` follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from attrs import Attribute, field, fields, frozen

S = TypeVar("S")
MAX_SECONDS = 86_400.0
MAX_NESTING = 100_000
MAX_THREADS = 10_000
Presentation: TypeAlias = Literal["native", "code", "both"]
PRESENTATIONS: tuple[Presentation, ...] = get_args(Presentation)
ApprovalPolicy: TypeAlias = Literal["ask", "never"]
APPROVAL_POLICIES: tuple[ApprovalPolicy, ...] = get_args(ApprovalPolicy)
LogSync: TypeAlias = Literal["normal", "full", "off"]
LOG_SYNCS: tuple[LogSync, ...] = get_args(LogSync)
CodeRuntimeChoice: TypeAlias = Literal["subprocess", "plugin"]
CODE_RUNTIMES: tuple[CodeRuntimeChoice, ...] = get_args(CodeRuntimeChoice)
Sandbox: TypeAlias = Literal["none", "bwrap"]
SANDBOXES: tuple[Sandbox, ...] = get_args(Sandbox)
MIB = 1_048_576
FIRST_USERS = (1_000, 2**32 - 2**17 - 1)
LEAST_EVENT = 4_096
MAX_EVENT = 1_073_741_824
MAX_DAYS = 36_500


class UnexpectedValueError(Exception):
    """What was expected instead; the message completes 'expected ...'."""


def _setting(check: Callable[[object], object], default: object) -> Any:
    return field(default=default, metadata={"check": check})


def _table(cls: type[Any]) -> Any:
    return field(factory=cls, metadata={"table": cls})


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


def seconds_between(least: float, most: float) -> Callable[[object], float]:
    """A number of seconds from ``least`` to ``most``."""

    def check(value: object) -> float:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
            return float(value)
        raise UnexpectedValueError(f"a number of seconds from {least:g} to {most:g}")

    return check


def count_up_to(most: int) -> Callable[[object], int]:
    """A whole number from 1 to ``most``."""

    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return value
        raise UnexpectedValueError(f"a whole number from 1 to {most}")

    return check


def count_between(least: int, most: int) -> Callable[[object], int]:
    """A whole number from ``least`` to ``most``."""

    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise UnexpectedValueError(f"a whole number from {least} to {most}")

    return check


def user_or_own_range(value: object) -> int | None:
    """The number of a user; ``false`` is for the runtime to choose."""
    try:
        return None if value is False else count_between(*FIRST_USERS)(value)
    except UnexpectedValueError as error:
        raise UnexpectedValueError(f"{error}; false uses a range that nobody else does") from None


def days_or_off(value: object) -> float | None:
    """A number of days; ``false`` is no limit."""
    if value is False:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MAX_DAYS:
        return float(value)
    raise UnexpectedValueError(f"a number of days from 0 to {MAX_DAYS}; false keeps for ever")


def bytes_or_off(value: object) -> int | None:
    """A number of bytes; ``false`` is no limit."""
    if value is False:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise UnexpectedValueError("a whole number of bytes; false is no limit")


def text(value: object) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise UnexpectedValueError("a text")


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
class LogSettings:
    """``[host.log]``: the session log. An empty ``path`` is the user's own log; a limit that is off is ``None``.

    Where the config does not say whether it is enabled, a host with a config file keeps one and any other does not.
    """

    enabled: bool = _setting(switch, True)
    path: str = _setting(text, "")
    sync: LogSync = _setting(one_of(*LOG_SYNCS), "normal")  # noqa: RUF009 - a field like the others
    max_event_bytes: int = _setting(count_between(LEAST_EVENT, MAX_EVENT), 1_048_576)
    keep_days: float | None = _setting(days_or_off, None)
    max_bytes: int | None = _setting(bytes_or_off, None)


@frozen(kw_only=True)
class CodeSettings:
    """``[host.code]``: Code Mode, and what one program may take. Times are in seconds, sizes in bytes.

    Where the config does not say whether it is enabled, it is on a host with this table, or whose ``presentation``
    needs it.
    """

    enabled: bool = _setting(switch, True)
    runtime: CodeRuntimeChoice = _setting(one_of(*CODE_RUNTIMES), "subprocess")  # noqa: RUF009 - a field like the others
    sandbox: Sandbox = _setting(one_of(*SANDBOXES), "none")  # noqa: RUF009
    wall_time: float = _setting(seconds_between(0.01, MAX_SECONDS), 120.0)
    cpu_time: int = _setting(count_up_to(int(MAX_SECONDS)), 30)
    memory: int = _setting(count_between(16 * MIB, 2**40), 512 * MIB)
    output_bytes: int = _setting(count_up_to(2**30), MIB)
    processes: int = _setting(count_between(0, 10_000), 0)
    threads: int = _setting(count_between(0, 10_000), 16)
    sub_calls: int = _setting(count_between(0, 1_000_000), 1_000)
    frame_bytes: int = _setting(count_between(4_096, 2**30), 16 * MIB)
    file_bytes: int = _setting(count_between(0, 2**40), 0)
    open_files: int = _setting(count_between(16, 65_536), 64)
    spares: int = _setting(count_between(0, 64), 2)
    runs: int = _setting(count_up_to(1_000), 16)
    first_user: int | None = _setting(user_or_own_range, None)
    max_parallel: int = _setting(count_up_to(1_000), 10)
    max_media: int = _setting(count_between(0, 1_000), 20)


@frozen(kw_only=True)
class HostSettings:
    """How the host itself behaves. Times are in seconds; a limit that is switched off is ``None``."""

    policy_timeout: float | None = _setting(seconds_or_off, 30.0)
    start_timeout: float | None = _setting(seconds_or_off, 60.0)
    drain_timeout: float = _setting(seconds, 30.0)
    teardown_timeout: float = _setting(seconds, 10.0)
    watchdog: float | None = _setting(seconds_or_off, 1.0)
    reload: bool = _setting(switch, False)
    max_depth: int = _setting(count_up_to(MAX_NESTING), 512)
    threads: int = _setting(count_up_to(MAX_THREADS), 40)
    presentation: Presentation = _setting(one_of(*PRESENTATIONS), "native")  # noqa: RUF009 - a field like the others
    approval: ApprovalPolicy = _setting(one_of(*APPROVAL_POLICIES), "ask")  # noqa: RUF009
    approval_timeout: float | None = _setting(seconds_or_off, 300.0)
    reload_timeout: float | None = _setting(seconds_or_off, 30.0)
    reload_wait: float = _setting(seconds, 10.0)
    log: LogSettings = _table(LogSettings)  # noqa: RUF009
    code: CodeSettings = _table(CodeSettings)  # noqa: RUF009


def known_settings(cls: type[Any] = HostSettings) -> dict[str, Attribute[Any]]:
    """The settings of a table by name."""
    return {attribute.name: attribute for attribute in fields(cls)}


def table_of(setting: Attribute[Any]) -> type[Any] | None:
    """The class of a setting that is a table of its own, else ``None``."""
    table: type[Any] | None = setting.metadata.get("table")
    return table


def build_settings(cls: type[S], values: Mapping[str, object]) -> S:
    """The settings of a table as the host uses them; raises ``UnexpectedValueError`` for a value that is none."""
    return cls(**{name: check_setting(known_settings(cls)[name], value) for name, value in values.items()})


def check_setting(setting: Attribute[Any], value: object) -> object:
    """The value as the host uses it; raises ``UnexpectedValueError`` when it is not one."""
    table = table_of(setting)
    if table is None:
        return setting.metadata["check"](value)
    if not isinstance(value, Mapping):
        raise UnexpectedValueError("a table")
    return build_settings(table, value)
