"""The service ``code_mode``: the host's own plugin that registers ``run_code`` and tells models of the tools."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Final

from dsh_runtime.code_mode.config import CodeModeConfig
from dsh_runtime.code_mode.people import People
from dsh_runtime.code_mode.run_code import NAME, Runner, make_tool
from dsh_runtime.code_mode.sdk.text import fenced, sdk_text
from dsh_runtime.core.services import Service
from dsh_runtime.tools.definition import RESERVED_NAMES, ToolDefinition
from dsh_runtime.tools.registry import TOOL, RegisteredTool

SECTION: Final = "Tools for programs"
_INTRODUCTION: Final = """\
A program that `run_code` runs finds these declarations in force, as the names `tools` and `ToolCallError`:"""


class CodeMode(Service):
    """Offers ``run_code`` wherever a scope's mode is ``code`` or ``both``."""

    name: ClassVar[str] = "code_mode"
    inject = {"tools": True, "code_runtime": True, "system_prompt": True}  # noqa: RUF012  # the base class declares it
    Config = CodeModeConfig

    def __init__(self, config: CodeModeConfig | None = None) -> None:
        self.config = config if config is not None else CodeModeConfig()
        self._texts: dict[tuple[ToolDefinition, ...], str] = {}

    def start(self) -> None:
        """Register the tool and the section of the system prompt."""
        ctx, machine = self.ctx, self.ctx.tools.machine
        people = People(machine.calls)
        ctx.on("approval/asked", people.asked)
        ctx.on("approval/decided", people.decided)
        ctx.on("tools/change", self._forget)
        tool = make_tool(Runner(ctx, people, self.config).execute)
        # The name is reserved, so the registry's own door is closed to it.
        ctx.register(TOOL, RegisteredTool(tool, ctx.fiber), key=NAME)
        ctx.system_prompt.section(SECTION, self._section)

    def sdk(self, scope: Hashable | None = None) -> str:
        """The tools that a scope sees, as declarations of Python; the same text for as long as they are the same."""
        machine = self.ctx.tools.machine
        visible = machine.resolver.visible(machine.pipeline(scope).chain)
        tools = sorted((tool.definition for tool in visible if tool.name not in RESERVED_NAMES), key=_name)
        text = self._texts.get(tuple(tools))
        if text is None:
            text = self._texts[tuple(tools)] = sdk_text(tools)
        return text

    def _forget(self) -> None:
        self._texts.clear()

    def introduction(self, scope: Hashable | None = None) -> str:
        """What a model has to read about the tools, in Markdown, before it writes a program for a scope."""
        return f"{_INTRODUCTION}\n\n{fenced(self.sdk(scope))}"

    def _section(self, scope: Hashable | None) -> str | None:
        machine: Any = self.ctx.tools.machine
        return None if machine.pipeline(scope).mode == "native" else self.introduction(scope)


def _name(tool: ToolDefinition) -> str:
    return tool.name
