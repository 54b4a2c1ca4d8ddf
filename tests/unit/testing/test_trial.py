"""A trial: what it hears, how calls are begun, ended and batched, and how its end is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dsh_plugin_greet
import pytest
import trio

from dsh_runtime import Ask, HostError, ToolDefinition, ToolOutput, hookspec
from dsh_runtime.testing import (
    Denial,
    FakeTool,
    ScriptedApproval,
    VirtualClock,
    assert_denied,
    assert_failed,
    assert_ok,
    call,
    open_trial,
    provide,
)


class Waits:
    """A tool that waits until it is told to stop, one that calls another, and one that tells how far it is."""

    name = "waits"
    inject = ("tools",)

    def apply(self, ctx: Any) -> None:
        self.ctx = ctx
        for name in ("wait", "relay", "tell"):
            body = getattr(self, name)
            ctx.tools.register(ToolDefinition(name, "…", {"type": "object"}, ToolOutput(schema={}), body))

    async def wait(self, args: Any, exec: Any) -> str:
        await exec.signal.wait()
        return "told"

    async def tell(self, args: Any, exec: Any) -> str:
        exec.progress(1, 2)
        return "told"

    async def relay(self, args: Any, exec: Any) -> Any:
        from dsh_runtime import ToolExecutionInput

        inner = ToolExecutionInput("inner", "tell", {}, exec.signal, exec.agent, exec.token, exec.root_call_id)
        return (await self.ctx.tools.execute(inner)).value


class Asks:
    name = "asks"

    def apply(self, ctx: Any) -> None:
        ctx.on("tools/pre-execute", lambda: Ask("is it?"))


async def test_a_trial_is_a_host_with_an_agent() -> None:
    async with open_trial(dsh_plugin_greet) as trial:
        assert_ok(await trial.call("greet", {"name": "Ada"}), "Hello, Ada!")
        assert trial.recorder.events("greet") == [
            "tools/pre-execute",
            "tools/execute",
            "tools/post-execute",
            "tools/result",
        ]


async def test_an_installed_plugin_is_loaded_by_its_name() -> None:
    async with open_trial("greet") as trial:
        assert_ok(await trial.call("greet", {"name": "Ada"}))


async def test_a_person_answers_as_scripted() -> None:
    approval = ScriptedApproval(["allowed-once", "rejected"])
    async with open_trial(Asks(), approval, dsh_plugin_greet) as trial:
        assert_ok(await trial.call("greet", {"name": "Ada"}))
        assert_denied(await trial.call("greet", {"name": "Ada"}))
        assert_failed(await trial.call("greet", {"name": "Ada"}), "APPROVAL_UNAVAILABLE")
    assert [request.exec.name for request in approval.asked] == ["greet", "greet", "greet"]


async def test_a_service_is_stood_in_for() -> None:
    class Clocked:
        name = "clocked"
        inject = ("wall",)

        def apply(self, ctx: Any) -> None:
            assert ctx.wall == "noon"

    async with open_trial(provide("wall", "noon"), Clocked()):
        pass


@pytest.mark.parametrize("where", [True, "a path"])
async def test_what_is_on_record_can_be_read(where: Any, tmp_path: Path) -> None:
    log = where if where is True else tmp_path / "log.db"
    async with open_trial(Denial("not today"), dsh_plugin_greet, log=log) as trial:
        assert_denied(await trial.call("greet", {"name": "Ada"}), plugin="denial", reason="not today")
        types = [event["type"] for event in await trial.on_record()]
        (result,) = await trial.on_record("tool/result")
    assert types[-2:] == ["tool/call", "tool/result"]
    assert result["payload"]["error"]["plugin"] == "denial"


async def test_a_temporary_log_goes_with_its_trial() -> None:
    async with open_trial(log=True) as trial:
        assert trial.log_path is not None
        assert trial.log_path.exists()
    assert not trial.log_path.exists()


async def test_without_a_log_there_is_nothing_to_read() -> None:
    async with open_trial() as trial:
        with pytest.raises(LookupError, match="log=True"):
            await trial.on_record()


async def test_stages_stand_where_they_began() -> None:
    async with open_trial(Waits()) as trial:
        trial.recorder.clear()
        assert_ok(await trial.call("relay"), "told")
    assert [(heard.event.removeprefix("tools/"), heard.tool) for heard in trial.recorder.heard[:9]] == [
        ("pre-execute", "relay"),
        ("execute", "relay"),
        ("pre-execute", "tell"),
        ("execute", "tell"),
        ("progress", "tell"),
        ("post-execute", "tell"),
        ("result", "tell"),
        ("post-execute", "relay"),
        ("result", "relay"),
    ]


async def test_what_is_heard_has_its_arguments_and_answer() -> None:
    async with open_trial(Denial("not today"), dsh_plugin_greet) as trial:
        result = await trial.call(call("greet", name="Ada"))
    heard = next(one for one in trial.recorder.heard if one.event == "tools/pre-execute")
    assert heard.exec.arguments == {"name": "Ada"}
    assert heard.answer.reason == "not today"
    assert trial.recorder.answers("tools/result", "greet") == [result]
    assert 'tools/pre-execute greet({"name": "Ada"}) -> Deny' in trial.recorder.told()


async def test_a_stage_that_fails_is_heard_with_what_it_raised() -> None:
    class Fails:
        name = "fails"

        def apply(self, ctx: Any) -> None:
            ctx.on("tools/execute", self.fail)

        def fail(self) -> Any:
            raise RuntimeError("broken")

    async with open_trial(Fails(), dsh_plugin_greet) as trial:
        assert_failed(await trial.call("greet", {"name": "Ada"}), plugin="fails")
    (heard,) = [one for one in trial.recorder.heard if one.event == "tools/execute"]
    assert "broken" in repr(heard.raised)


class Weather:
    """Declares events of its own."""

    name = "weather"

    @hookspec(mode="emit")
    def weather_change(self, place: str, degrees: int) -> None:
        """The weather has changed."""

    @hookspec(mode="waterfall", returns=(str,))
    def weather_ask(self, place: str, next: Any) -> str:
        """What is the weather?"""
        raise AssertionError

    def apply(self, ctx: Any) -> None:
        ctx.add_hookspecs(Weather)


async def test_events_of_plugins_are_heard_when_asked_for() -> None:
    async with open_trial(Weather()) as trial:
        trial.recorder.clear()
        undo = trial.recorder.hear("weather/change")
        trial.recorder.hear("weather/ask")
        trial.host.ctx.emit("weather/change", "here", 21)
        assert await trial.host.ctx.waterfall("weather/ask", "here", default="mild") == "mild"
        undo()
        trial.host.ctx.emit("weather/change", "here", 3)
    heard = [(one.event, one.arguments, one.answer) for one in trial.recorder.heard if one.event.startswith("weather/")]
    assert heard == [("weather/change", ("here", 21), None), ("weather/ask", ("here",), "mild")]


async def test_what_people_are_asked_and_say_is_heard() -> None:
    async with open_trial(Asks(), ScriptedApproval(["rejected"]), dsh_plugin_greet) as trial:
        assert_denied(await trial.call("greet", {"name": "Ada"}), plugin="asks")
    assert [name for name in trial.recorder.events() if name.startswith("approval/")] == [
        "approval/asked",
        "approval/decided",
    ]
    assert trial.recorder.answers("approval/decided") == ["rejected"]


async def test_a_call_is_begun_and_aborted() -> None:
    async with open_trial(Waits()) as trial:
        running = trial.begin("wait")
        await trio.testing.wait_all_tasks_blocked()
        assert not running.ended
        running.abort("enough")
        assert_failed(await running.result(), "ABORTED", message="enough")


async def test_calls_that_are_under_way_are_ended_with_a_body_that_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_trial(Waits()) as trial:
            running = trial.begin(call("wait"))
            await trio.testing.wait_all_tasks_blocked()
            raise ZeroDivisionError
    assert running.ended
    with pytest.raises(LookupError):
        await running.result()


async def test_calls_are_made_as_a_batch() -> None:
    async with open_trial(dsh_plugin_greet) as trial:
        results = await trial.batch([call("greet", name="Ada"), ("greet", {"name": "Eve"})])
    assert [assert_ok(result).value for result in results] == ["Hello, Ada!", "Hello, Eve!"]


async def test_a_trial_that_cannot_be_opened_raises_what_the_host_raises() -> None:
    class Fails:
        name = "fails"

        def apply(self, ctx: Any) -> None:
            raise RuntimeError("broken")

    with pytest.raises(HostError, match="broken"):
        async with open_trial(Fails()):
            pass


async def test_plugins_are_known_by_their_ids() -> None:
    async with open_trial(Denial(), (dsh_plugin_greet, None), log=True) as trial:
        assert trial.ids == ("denial", "greet")
        assert trial.fiber("greet").name == "greet"
        with pytest.raises(LookupError, match=r"loaded: .*denial, greet"):
            trial.fiber("nobody")


async def test_a_person_may_take_time_or_leave(virtual_clock: VirtualClock) -> None:
    async def hesitate(request: Any) -> str:
        await trio.sleep(60)
        return "allowed-once"

    approval = ScriptedApproval([hesitate, lambda request: "rejected", RuntimeError("gone")])
    async with open_trial(Asks(), approval, dsh_plugin_greet) as trial:
        assert_ok(await trial.call("greet", {"name": "Ada"}))
        assert_failed(await trial.call("greet", {"name": "Ada"}), "APPROVAL_REJECTED")
        assert_failed(await trial.call("greet", {"name": "Ada"}), message="gone")
    assert approval.left == 0


def test_an_answer_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'yes' is no outcome"):
        ScriptedApproval(["yes"])


async def test_a_stand_in_for_a_tool_does_as_it_is_told() -> None:
    tools = [FakeTool("say", "hello"), FakeTool("double", lambda args: args["n"] * 2), FakeTool("fail", KeyError("x"))]
    async with open_trial(*tools) as trial:
        assert_ok(await trial.call("say"), "hello")
        assert_ok(await trial.call("double", {"n": 2}), 4)
        assert_failed(await trial.call("fail"), None, plugin="fake-fail")
    assert [tool.ran for tool in tools] == [[{}], [{"n": 2}], [{}]]
