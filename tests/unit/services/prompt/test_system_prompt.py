"""The service ``system_prompt``: sections in order, by scope, with their undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dsh_runtime import HarnessError, open_host


def contributor(name: str, *sections: tuple[str, Any]) -> Any:
    """A plugin that contributes sections."""

    class Contributor:
        inject = ("system_prompt",)

        def apply(self, ctx: Any) -> None:
            self.ctx = ctx
            for title, text in sections:
                ctx.system_prompt.section(title, text)

    plugin: Any = Contributor()
    plugin.name = name
    return plugin


async def prompt_of(*plugins: Any) -> str:
    async with open_host(plugins=plugins) as host:
        text: str = host.ctx.get("system_prompt").text()
        return text


async def test_sections_stand_in_the_order_of_their_plugins() -> None:
    first, second = contributor("a", ("One", "1"), ("Two", "2")), contributor("b", ("Three", "3"))
    assert await prompt_of(first, second) == "# One\n\n1\n\n# Two\n\n2\n\n# Three\n\n3"


async def test_a_host_without_sections_has_an_empty_prompt() -> None:
    assert await prompt_of() == ""


async def test_a_section_knows_its_plugin() -> None:
    async with open_host(plugins=[contributor("a", ("One", "1"))]) as host:
        (section,) = host.ctx.get("system_prompt").sections()
    assert (section.title, section.text, section.plugin) == ("One", "1", "a")


async def test_the_undo_takes_away_its_own_section_alone() -> None:
    async with open_host() as host:
        prompt = host.ctx.get("system_prompt")
        undo = prompt.section("One", "1")
        prompt.section("Two", "2")
        undo()
        undo()
        assert prompt.text() == "# Two\n\n2"


async def test_sections_go_with_their_plugin() -> None:
    plugin = contributor("a", ("One", "1"))
    async with open_host(plugins=[plugin]) as host:
        await host.plugins[0].fiber.dispose()
        assert host.ctx.get("system_prompt").text() == ""


async def test_a_scopes_section_is_its_own_and_that_of_the_scopes_below() -> None:
    async with open_host(plugins=[contributor("a", ("One", "1"))]) as host:
        prompt = host.ctx.get("system_prompt")
        scope = host.ctx.scope()
        below, beside = host.ctx.scope(parent=scope.key), host.ctx.scope()
        scope.ctx.get("system_prompt").section("Two", "2")
        assert [section.title for section in prompt.sections(below.key)] == ["One", "Two"]
        assert [section.title for section in prompt.sections(beside.key)] == ["One"]
        assert [section.title for section in prompt.sections()] == ["One"]


async def test_a_scopes_section_takes_the_place_of_the_one_of_its_title_above() -> None:
    async with open_host(plugins=[contributor("a", ("One", "outer"))]) as host:
        scope = host.ctx.scope()
        undo = scope.ctx.get("system_prompt").section("One", "inner")
        assert host.ctx.get("system_prompt").text(scope.key) == "# One\n\ninner"
        undo()
        assert host.ctx.get("system_prompt").text(scope.key) == "# One\n\nouter"


async def test_a_second_section_of_one_title_in_one_layer_is_refused() -> None:
    async with open_host() as host:
        prompt = host.ctx.get("system_prompt")
        prompt.section("One", "1")
        with pytest.raises(HarnessError, match="One"):
            prompt.section("One", "2")
        assert prompt.text() == "# One\n\n1"


async def test_a_function_gives_the_text_for_the_scope_that_is_asked_for() -> None:
    async with open_host(plugins=[contributor("a", ("Who", lambda scope: scope and f"you are {scope}"))]) as host:
        prompt = host.ctx.get("system_prompt")
        assert prompt.text("ada") == "# Who\n\nyou are ada"
        assert prompt.text() == ""


@pytest.mark.parametrize("fails", [lambda scope: 1 / 0, lambda scope: 7], ids=["raises", "gives no text"])
async def test_a_section_that_fails_is_told_and_not_left_out(fails: Callable[[Any], Any]) -> None:
    with pytest.raises(HarnessError, match=r"plugin 'a', section 'Rules'") as caught:
        await prompt_of(contributor("a", ("Rules", fails)))
    assert caught.value.code == "PROMPT_FAILED"


async def anything(scope: Any) -> str:
    return ""


@pytest.mark.parametrize(("title", "text"), [("", "x"), ("a\nb", "x"), (1, "x"), ("a", None), ("a", anything)])
async def test_what_is_no_section_is_refused(title: Any, text: Any) -> None:
    async with open_host() as host:
        with pytest.raises(HarnessError) as caught:
            host.ctx.get("system_prompt").section(title, text)
        assert caught.value.code == "PROMPT_INVALID"
