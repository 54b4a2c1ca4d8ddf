"""How tools are presented to clients, and what the model of one that sees ``run_code`` has to know of the others.

An MCP client has no system prompt of the host's, so the description of ``run_code`` says it.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from attrs import frozen
from dsh_hookspecs import Context, HarnessError

Presentation: TypeAlias = Literal["native", "code", "both"]
RUN_CODE: Final = "run_code"


class PresentationError(HarnessError):
    """Clients are to see programs, and the host runs none."""

    default_code = "NO_CODE_MODE"


def present(ctx: Context, mode: Presentation | None) -> None:
    """Present the tools of a scope's context in ``mode``; ``None`` leaves it to what stands above."""
    if mode is None:
        return
    if mode != "native" and ctx.get("code_mode") is None:
        raise PresentationError(
            f"presentation = {mode!r} shows MCP clients the tool 'run_code', and this host runs no programs; "
            "add a table [host.code] to its config, or use 'native'"
        )
    ctx.tools.present_as(mode)


@frozen
class Declarations:
    """The tools that an agent's programs find, in words for its model."""

    ctx: Context
    agent: object

    def text(self) -> str:
        """The text, for the tools of this moment; nothing where the host runs no programs."""
        code_mode = self.ctx.get("code_mode")
        return "" if code_mode is None else str(code_mode.introduction(self.agent))
