"""The service ``code_mode``: the SDK text of a scope, and its section of the system prompt."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from attrs import fields, fields_dict
from sdk_kit import made, methods

from dsh_runtime import open_host
from dsh_runtime.code_mode.config import CodeModeConfig
from dsh_runtime.code_mode.runtime.config import CodeRuntimeConfig
from dsh_runtime.loader.settings import CodeSettings, UnexpectedValueError


class NoRuntime:
    """A runtime that is never asked to run anything."""

    name = "no-runtime"
    provides = ("code_runtime",)
    language = "python"

    def apply(self, ctx: Any) -> None:
        ctx.provide("code_runtime", self)


@pytest.fixture
async def ctx() -> AsyncIterator[Any]:
    """A host in mode native that has Code Mode for the scopes that want it."""
    config = {"host": {"code": {"runtime": "plugin"}}}
    async with open_host(config, plugins=[NoRuntime()]) as host:
        yield host.ctx


def names_in(text: str) -> list[str]:
    return list(methods(text))


async def test_the_text_holds_exactly_the_visible_tools_in_the_order_of_their_names(ctx: Any) -> None:
    for name in ("b", "c", "a"):
        ctx.tools.register(made(name))
    scope = ctx.scope()
    scope.ctx.tools.restrict(deny=["b"])
    scope.ctx.tools.register(made("own"))
    scope.ctx.tools.present_as("code")
    code_mode = ctx.get("code_mode")
    assert names_in(code_mode.sdk()) == ["a", "b", "c"]
    assert names_in(code_mode.sdk(scope.key)) == ["a", "c", "own"]


async def test_a_tool_that_comes_or_goes_changes_the_text(ctx: Any) -> None:
    code_mode = ctx.get("code_mode")
    assert names_in(code_mode.sdk()) == []
    undo = ctx.tools.register(made("a", "first"))
    first = code_mode.sdk()
    assert names_in(first) == ["a"]
    assert code_mode.sdk() is first  # made once for as long as the tools are the same
    undo()
    ctx.tools.register(made("a", "second"))
    assert "second" in code_mode.sdk()


@pytest.mark.parametrize(("mode", "told"), [("native", False), ("code", True), ("both", True)])
async def test_the_prompt_tells_of_the_tools_where_programs_are(ctx: Any, mode: str, told: bool) -> None:
    ctx.tools.register(made("a", "```\nhostile\n```"))
    scope = ctx.scope()
    scope.ctx.tools.present_as(mode)
    prompt = ctx.get("system_prompt").text(scope.key)
    assert ("async def a(" in prompt) == told
    assert ctx.get("system_prompt").text() == ""
    if told:
        assert prompt.rstrip().splitlines()[-1] == "````"


async def test_without_code_mode_there_is_no_section() -> None:
    async with open_host() as host:
        host.ctx.tools.register(made("a"))
        scope = host.ctx.scope()
        scope.ctx.tools.present_as("code")
        assert host.ctx.get("system_prompt").text(scope.key) == ""


@pytest.mark.parametrize("part", [CodeRuntimeConfig, CodeModeConfig])
def test_the_settings_of_the_host_are_those_of_the_parts(part: Any) -> None:
    """Each setting of a part can be given in the config, and says the same where it is not."""
    settings, own = CodeSettings(), part()
    for attribute in fields(part):
        assert getattr(settings, attribute.name) == getattr(own, attribute.name), attribute.name


VALUES = [-1, 0, 1, 15, 16, 64, 65, 999, 1_000, 4_095, 4_096, 10_000, 10_001, 86_400, 86_401]
VALUES += [16 * 2**20 - 1, 16 * 2**20, 2**30, 2**30 + 1, 2**40, 2**40 + 1]


@pytest.mark.parametrize("name", [attribute.name for attribute in fields(CodeRuntimeConfig)])
def test_the_bounds_of_a_setting_are_those_of_the_runtime(name: str) -> None:
    """What passes the one passes the other, and what does not does not."""
    check = fields_dict(CodeSettings)[name].metadata["check"]
    for value in (*VALUES, "none", "bwrap", "loud"):
        if name == "sandbox" or isinstance(value, int):
            assert takes(check, value) == takes(CodeRuntimeConfig, **{name: value}), value


def takes(check: Any, *args: Any, **named: Any) -> bool:
    try:
        check(*args, **named)
    except (ValueError, UnexpectedValueError):
        return False
    return True


def test_a_host_without_code_mode_imports_none_of_it() -> None:
    """It costs nothing where it is off."""
    program = (
        "import sys, trio, dsh_runtime\n"
        "async def main():\n"
        "    async with dsh_runtime.open_host({'host': {'code': {'enabled': False}}}): pass\n"
        "trio.run(main)\n"
        "print([name for name in sys.modules if name.startswith('dsh_runtime.code_mode')])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
