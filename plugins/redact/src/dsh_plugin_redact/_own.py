"""Rules of one's own: regular expressions from the config, each with a deadline.

The standard library's engine cannot be stopped, so these run in the ``regex`` package, which can. A rule that does not
come to an end in time has not said that a text is clean: the whole text is masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import regex
from attrs import frozen

from dsh_plugin_redact._mask import Span

#: The group that is masked, where a pattern has it.
GROUP: Final = "secret"
_STARTED: Final = 1_000_000


class RuleTimeoutError(Exception):
    """A rule did not come to an end in time; ``kind`` says which."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the redact rule {kind!r} did not come to an end in time")
        self.kind = kind


@frozen
class OwnRule:
    """One rule of one's own; ``seconds`` is its time for each started million characters."""

    kind: str
    pattern: regex.Pattern[str]
    seconds: float

    def find(self, text: str) -> Iterator[Span]:
        """What the rule finds; :class:`RuleTimeoutError` if it takes too long."""
        group = GROUP if GROUP in self.pattern.groupindex else 0
        allowed = self.seconds * (1 + len(text) // _STARTED)
        try:
            for match in self.pattern.finditer(text, timeout=allowed):
                start, end = match.span(group)
                if start < end:
                    yield Span(start, end, self.kind)
        except TimeoutError:
            raise RuleTimeoutError(self.kind) from None


def compile_pattern(source: str) -> regex.Pattern[str]:
    """A pattern of the config, compiled; :class:`ValueError` says what is wrong with it."""
    try:
        return regex.compile(source, regex.VERSION0)
    except regex.error as error:
        raise ValueError(f"{source!r} is no regular expression: {error}") from None
