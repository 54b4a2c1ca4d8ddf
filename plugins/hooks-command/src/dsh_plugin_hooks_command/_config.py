"""The hooks of a host."""

from __future__ import annotations

import re
from typing import Any

from attrs import Attribute, field, frozen, validators


def _pattern(instance: object, attribute: Attribute[Any], value: str) -> None:
    if value not in ("", "*"):
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"the matcher {value!r} is no regular expression: {error}") from None


@frozen
class Hook:
    """One command. It runs for the tools whose whole name ``matcher`` matches (``*`` or empty: for all)."""

    command: str = field(validator=validators.min_len(1))
    matcher: str = field(default="*", validator=_pattern)
    #: Seconds; a hook that takes longer has failed.
    timeout: float = field(default=60.0, validator=validators.gt(0))

    def concerns(self, tool: str) -> bool:
        """Whether the hook is for this tool."""
        return self.matcher in ("", "*") or re.fullmatch(self.matcher, tool) is not None


@frozen
class Config:
    """Which commands run when, and with what."""

    pre_tool_use: tuple[Hook, ...] = ()
    post_tool_use: tuple[Hook, ...] = ()
    #: A client's settings file, whose ``hooks`` are taken over.
    settings: str | None = None
    #: What tools are called in the hooks' matchers and input, where that is not their name here.
    tool_names: dict[str, str] = field(factory=dict)
    #: The folder that commands run in; ``None``: the host's.
    cwd: str | None = None
    #: Beside PATH, HOME, USER, SHELL, TMPDIR, LANG and LC_*.
    env: dict[str, str] = field(factory=dict)
    #: What a hook prints above this is a failure.
    max_output_bytes: int = field(default=1_048_576, validator=validators.ge(1024))
