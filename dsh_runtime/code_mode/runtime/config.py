"""The settings of the subprocess runtime."""

from __future__ import annotations

from typing import Any, Final

from attrs import Attribute, field, frozen

_MIB: Final = 1024 * 1024
_SANDBOXES: Final = ("none", "bwrap")


def _between(least: float, most: float) -> Any:
    def check(_config: object, attribute: Attribute[Any], value: Any) -> None:
        if not least <= value <= most:
            raise ValueError(f"{attribute.name} is {value}; expected {least:g} to {most:g}")

    return check


def _sandbox(_config: object, _attribute: Attribute[Any], value: str) -> None:
    if value not in _SANDBOXES:
        raise ValueError(f"sandbox is {value!r}; expected 'none' or 'bwrap'")


def _user(_config: object, _attribute: Attribute[Any], value: int | None) -> None:
    if value is not None and not 1_000 <= value < 2**32 - 2**17:
        raise ValueError(f"first_user is {value}; expected a number from 1000 on, of a user that nobody else has")


@frozen(kw_only=True)
class CodeRuntimeConfig:
    """What one program may take, and how many at once.

    Times are in seconds, sizes in bytes. ``wall_time`` counts everything but what people take to answer; ``cpu_time``
    the processor's. ``memory`` is that of each process, beyond the interpreter's own. A program may have so many
    ``processes`` and ``threads`` beside its first of each, and make ``sub_calls`` calls of tools. ``output_bytes``
    bounds what it prints, ``frame_bytes`` each value that it passes on or gets, ``file_bytes`` each file that it writes
    in its working directory (0: it can write none).

    ``sandbox = "bwrap"`` runs each program in bubblewrap, or none at all where that is absent. ``spares`` interpreters
    are kept ready, ``runs`` programs run at once; others wait. A host that is root gives each program one of the 65,536
    users from ``first_user`` on (by default, of a range that nobody else uses).
    """

    wall_time: float = field(default=120.0, validator=_between(0.01, 86_400))
    cpu_time: int = field(default=30, validator=_between(1, 86_400))
    memory: int = field(default=512 * _MIB, validator=_between(16 * _MIB, 2**40))
    output_bytes: int = field(default=_MIB, validator=_between(1, 2**30))
    processes: int = field(default=0, validator=_between(0, 10_000))
    threads: int = field(default=16, validator=_between(0, 10_000))
    sub_calls: int = field(default=1_000, validator=_between(0, 1_000_000))
    frame_bytes: int = field(default=16 * _MIB, validator=_between(4_096, 2**30))
    file_bytes: int = field(default=0, validator=_between(0, 2**40))
    open_files: int = field(default=64, validator=_between(16, 65_536))
    sandbox: str = field(default="none", validator=_sandbox)
    spares: int = field(default=2, validator=_between(0, 64))
    runs: int = field(default=16, validator=_between(1, 1_000))
    first_user: int | None = field(default=None, validator=_user)
