"""The kit itself: hosts, virtual time, what was heard, assertions, arguments, and the fixtures that pytest finds."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import dsh_plugin_greet
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_runtime import Ask, ToolDefinition, ToolOutput, validate_json_schema_value
from dsh_runtime.testing import (
    Denial,
    ScriptedApproval,
    VirtualClock,
    arguments_for,
    assert_denied,
    assert_failed,
    assert_ok,
    open_house,
    provide,
)


class Sleeper:
    """Tools that take their time, in the loop and in a thread."""

    name = "sleeper"
    inject = ("tools",)

    def apply(self, ctx: Any) -> None:
        for name in ("doze", "work"):
            ctx.tools.register(
                ToolDefinition(name, "…", {"type": "object"}, ToolOutput(schema={}), getattr(self, name))
            )

    async def doze(self, args: Any, exec: Any) -> str:
        await trio.sleep(3600)
        return "rested"

    def work(self, args: Any, exec: Any) -> str:
        time.sleep(0.05)
        return "done"


class Asks:
    name = "asks"

    def apply(self, ctx: Any) -> None:
        ctx.on("tools/pre-execute", lambda: Ask("is it?"))


async def test_a_house_is_a_host_with_an_agent() -> None:
    async with open_house(dsh_plugin_greet) as house:
        assert_ok(await house.call("greet", {"name": "Ada"}), "Hello, Ada!")
        assert house.recorder.events("greet") == [
            "tools/pre-execute",
            "tools/execute",
            "tools/post-execute",
            "tools/result",
        ]


async def test_an_installed_plugin_is_loaded_by_its_name() -> None:
    async with open_house("greet") as house:
        assert_ok(await house.call("greet", {"name": "Ada"}))


async def test_a_person_answers_as_scripted() -> None:
    approval = ScriptedApproval(["allowed-once", "rejected"])
    async with open_house(Asks(), approval, dsh_plugin_greet) as house:
        assert_ok(await house.call("greet", {"name": "Ada"}))
        assert_denied(await house.call("greet", {"name": "Ada"}))
        assert_failed(await house.call("greet", {"name": "Ada"}), "APPROVAL_UNAVAILABLE")
    assert [request.exec.name for request in approval.asked] == ["greet", "greet", "greet"]


async def test_a_service_is_stood_in_for() -> None:
    class Clocked:
        name = "clocked"
        inject = ("wall",)

        def apply(self, ctx: Any) -> None:
            assert ctx.wall == "noon"

    async with open_house(provide("wall", "noon"), Clocked()):
        pass


async def test_what_is_on_record_can_be_read(tmp_path: Path) -> None:
    async with open_house(Denial("not today"), dsh_plugin_greet, log=tmp_path / "log.db") as house:
        assert_denied(await house.call("greet", {"name": "Ada"}), plugin="denial", reason="not today")
        types = [event["type"] for event in await house.on_record()]
    assert types[-2:] == ["tool/call", "tool/result"]


def test_virtual_time_moves_on_when_nothing_happens() -> None:
    async def main() -> float:
        async with open_house(Sleeper()) as house:
            assert_ok(await house.call("doze"), "rested")
            return trio.current_time()

    began = time.monotonic()
    assert trio.run(main, clock=VirtualClock()) >= 3600
    assert time.monotonic() - began < 30


def test_virtual_time_waits_for_threads() -> None:
    async def main() -> None:
        async with open_house(Sleeper()) as house:
            with trio.fail_after(0.01):
                assert_ok(await house.call("work"), "done")

    trio.run(main, clock=VirtualClock())


async def test_an_assertion_that_fails_tells_the_result() -> None:
    async with open_house(Denial("not today"), dsh_plugin_greet) as house:
        result = await house.call("greet", {"name": "Ada"})
    with pytest.raises(AssertionError) as caught:
        assert_ok(result)
    for words in ("DENIED", "not today", "denial"):
        assert words in str(caught.value)
    for wrong in (lambda: assert_failed(result, "GUARDED"), lambda: assert_denied(result, plugin="other")):
        with pytest.raises(AssertionError):
            wrong()


SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]},
    {"type": "object", "properties": {}, "additionalProperties": False},
    {"type": "array", "items": {"oneOf": [{"type": "null"}, {"type": "number"}]}},
    {"type": "string", "enum": ["x", "y"]},
    {"type": "boolean", "const": True},
    {},
    {"oneOf": [{"type": "integer"}, {"type": "number"}]},
]


@given(st.data(), st.sampled_from(SCHEMAS))
@settings(deadline=None, max_examples=150)
def test_generated_arguments_hold_to_their_schema(data: st.DataObject, schema: dict[str, Any]) -> None:
    assert validate_json_schema_value(schema, data.draw(arguments_for(schema)), "value") == ()


PROJECT = '''
    import dsh_plugin_greet
    import pytest

    from dsh_runtime.testing import assert_ok


    @pytest.mark.trio
    async def test_greets(dsh_house, virtual_clock):
        async with dsh_house(dsh_plugin_greet) as house:
            assert_ok(await house.call("greet", {"name": "Ada"}), "Hello, Ada!")
'''


def test_a_project_gets_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(textwrap.dedent(PROJECT))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_pytest_starts_without_importing_the_host() -> None:
    script = "import sys, dsh_runtime.pytest_plugin; sys.exit('dsh_runtime.loader' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
