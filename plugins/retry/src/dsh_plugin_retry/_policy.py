"""What is retried, and when: decisions without a clock or chance of their own."""

from __future__ import annotations

import fnmatch
import re

from attrs import frozen
from dsh_hookspecs import ToolDispatchExecution, ToolExecutionFailure, ToolExecutionResult

from dsh_plugin_retry._config import NEVER_RETRIED, Config


@frozen
class Policy:
    """A config made ready for use."""

    config: Config
    _tools: re.Pattern[str]

    def covers(self, call: ToolDispatchExecution) -> bool:
        """Whether a second run of this call would do no harm, and the config means its tool."""
        definition = call.definition
        return definition is not None and definition.idempotent is True and self._tools.match(call.name) is not None

    def retries(self, result: ToolExecutionResult) -> bool:
        """Whether a result is a failure that another attempt may mend."""
        if not result.is_error:
            return False
        code = code_of(result)
        if code is None:
            return self.config.without_code
        return code in self.config.codes and code not in NEVER_RETRIED

    def wait(self, attempt: int, elapsed: float, chance: float) -> float | None:
        """How long to wait after a failed ``attempt`` (from 1); ``None`` once the budget is spent.

        ``elapsed`` is the time since the first attempt began, ``chance`` a number from 0 to 1.
        """
        if attempt >= self.config.attempts:
            return None
        wait = self._backoff(attempt) * (1 - self.config.jitter * chance)
        return wait if elapsed + wait < self.config.max_time else None

    def _backoff(self, attempt: int) -> float:
        return min(self.config.delay * self.config.factor ** (attempt - 1), self.config.max_delay)


def build_policy(config: Config) -> Policy:
    """Compile the globs of a config."""
    return Policy(config, re.compile("|".join(fnmatch.translate(glob) for glob in config.tools)))


def code_of(result: ToolExecutionResult) -> str | None:
    """The code of a failure, where it has one."""
    if isinstance(result, ToolExecutionFailure) and result.error.info is not None:
        return result.error.info.code
    return None
