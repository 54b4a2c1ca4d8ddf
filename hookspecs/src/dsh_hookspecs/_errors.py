"""The errors that carry a stable code, split by whose fault they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from attrs import frozen


@frozen
class Violation:
    """One place at which a value or a schema breaks a rule.

    ``path`` names the place (``value.items[2].name``), ``message`` the rule and the offender.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class HarnessError(Exception):
    """Base of the errors that a tool, listener or service raises on purpose.

    The class name and ``code`` become the failure's ``info``; any other exception is reported without a code. A
    subclass sets ``default_code``; ``HarnessError("message", code="MY_CODE")`` sets one for a single error.
    """

    default_code: ClassVar[str | None] = None

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code: str | None = code if code is not None else self.default_code


class _ViolationsError(HarnessError):
    """A HarnessError that lists every violation it found."""

    def __init__(self, message: str, violations: Iterable[Violation] = (), *, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.violations: Sequence[Violation] = tuple(violations)


class ToolArgsError(_ViolationsError):
    """The caller's arguments are no lossless JSON, or the tool's parameter schema refuses them."""

    default_code = "INVALID_ARGS"


class ToolOutputError(_ViolationsError):
    """A tool's value, rendering or meta does not hold what its output declaration promises."""

    default_code = "INVALID_TOOL_OUTPUT"


class ToolFailedError(HarnessError):
    """The tool ran and says itself that it failed; ``content`` is what it has to say to the model.

    For tools that answer with content of their own, such as a remote server's. Without ``content`` the failure reads
    like that of any other error.
    """

    def __init__(self, message: str = "", *, content: Sequence[Any] | None = None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.content = content


class ToolNotFoundError(HarnessError):
    """No tool of this name is visible to the caller."""

    default_code = "UNKNOWN_TOOL"


class JsonSchemaError(_ViolationsError):
    """A schema lies outside the enforced subset; ``violations`` lists every place."""

    default_code = "UNSUPPORTED_SCHEMA"


class JsonValueError(_ViolationsError):
    """A value is not lossless JSON; ``violations`` holds the first place found."""

    default_code = "INVALID_JSON"
