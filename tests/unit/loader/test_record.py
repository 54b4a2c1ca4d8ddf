"""A host keeps a record of its calls: when, where, of what, and what happens when it cannot."""

# ruff: noqa: A006  # listeners are lambdas of exec and next

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from dsh_hookspecs import Ask, Deny, GenericCall, GenericResult, HarnessError

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host, tool
from dsh_runtime.loader.host import Host, HostError
from dsh_runtime.services.sessions.reading import Reader, StoredEvent

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789AB"


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool
async def fail(text: str) -> str:
    """Fail."""
    raise ValueError(f"no luck with {text}")


@tool
async def wait() -> None:
    """Wait for ever."""
    await trio.sleep_forever()


class Tools:
    """Offers the tools of the tests."""

    name = "tools-of-tests"
    inject = ("tools",)

    def apply(self, ctx: Any) -> None:
        for definition in (echo, fail, wait, login):
            ctx.tools.register(definition)


login = define_tool(
    name="login",
    description="Log in.",
    parameters={"password": {"type": "string", "required": True}, "more": {"type": "json"}},
    output={"type": "string"},
    execute=lambda args: "in",
    present_call=lambda args: GenericCall(title=f"Log in with {args['password']}"),
    present_result=lambda args, result: GenericResult(title=f"Logged in with {args['password']}"),
)


def config(tmp_path: Path, *rows: dict[str, Any]) -> dict[str, Any]:
    return {"host": {"log": {"path": str(tmp_path / "log.db")}}, "plugin": list(rows)}


async def call(host: Host, name: str, call_id: str = "c1", agent: Any = None, **arguments: Any) -> Any:
    key = host.ctx.scope().key if agent is None else agent
    return await host.ctx.tools.execute(ToolExecutionInput(call_id, name, arguments, AbortController().signal, key))


def events(tmp_path: Path) -> list[StoredEvent]:
    with Reader(tmp_path / "log.db") as reader:
        return list(reader.events())


def everything(tmp_path: Path) -> bytes:
    """All bytes of the log's files."""
    return b"".join(file.read_bytes() for file in tmp_path.iterdir())


def results(tmp_path: Path) -> dict[str, Any]:
    """The payloads of results by call id."""
    calls = {(event.session, event.seq): event.payload["call_id"] for event in events(tmp_path) if is_call(event)}
    ended = [event for event in events(tmp_path) if event.type == "tool/result"]
    return {calls[event.session, event.call or 0]: event.payload for event in ended}


def is_call(event: StoredEvent) -> bool:
    return event.type == "tool/call"


async def test_a_host_that_a_program_opens_keeps_no_record_unless_it_says_so(tmp_path: Path) -> None:
    """Nor is there a service ``sessions``."""
    async with open_host() as host:
        assert host.ctx.get("sessions") is None
    async with open_host(config(tmp_path)) as host:
        assert host.ctx.get("sessions").path == tmp_path / "log.db"


async def test_a_host_with_a_config_file_keeps_one_unless_it_is_switched_off(tmp_path: Path) -> None:
    """A relative path starts at the folder of the file."""
    file = tmp_path / "dsh.toml"
    file.write_text('[host.log]\npath = "logs/here.db"\n')
    async with open_host(file) as host:
        assert host.ctx.get("sessions").path == tmp_path / "logs" / "here.db"
    file.write_text("")
    async with open_host(file) as host:
        assert host.ctx.get("sessions").path.name == "sessions.db"
    file.write_text("[host.log]\nenabled = false\n")
    async with open_host(file) as host:
        assert host.ctx.get("sessions") is None


async def test_a_log_that_cannot_be_opened_stops_the_start_and_names_the_setting(tmp_path: Path) -> None:
    """Nothing is served off the record."""
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError) as caught:
        async with open_host({"host": {"log": {"path": str(tmp_path / "file" / "log.db")}}}):
            pass
    assert "host.log.path: session log" in str(caught.value)
    assert "set 'path' in [host.log], or enabled = false" in str(caught.value)


async def test_what_is_no_log_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    (tmp_path / "log.db").write_text("my diary, which is dear to me")
    with pytest.raises(HostError, match="no SQLite database"):
        async with open_host(config(tmp_path)):
            pass
    assert (tmp_path / "log.db").read_text() == "my diary, which is dear to me"


async def test_every_way_to_end_is_on_record_once(tmp_path: Path) -> None:
    """Successful, failed, denied, unknown, invalid, aborted and cancelled calls."""

    def gate(ctx: Any) -> None:
        ctx.on("tools/pre-execute", lambda exec, next: Deny("no") if exec.call_id == "denied" else next())

    async with open_host(config(tmp_path), plugins=[Tools(), gate]) as host:
        await call(host, "echo", "success", text="hi")
        await call(host, "fail", "failed", text="hi")
        await call(host, "echo", "denied", text="hi")
        await call(host, "nobody", "unknown")
        await call(host, "echo", "invalid", number=1)
        await call(host, "echo", "lossy", text=float("nan"))
        with trio.move_on_after(0.01):
            await call(host, "wait", "cancelled")
        source = AbortController()
        source.abort("not wanted")
        await host.ctx.tools.execute(ToolExecutionInput("aborted", "echo", {"text": "hi"}, source.signal))
    codes = {call_id: payload.get("code") for call_id, payload in results(tmp_path).items()}
    assert codes == {
        "success": None,
        "failed": None,
        "denied": "DENIED",
        "unknown": "UNKNOWN_TOOL",
        "invalid": "INVALID_ARGS",
        "lossy": "INVALID_ARGS",
        "cancelled": "ABORTED",
        "aborted": "ABORTED_BEFORE_DISPATCH",
    }
    found = events(tmp_path)
    assert set(Counter((e.session, e.seq) for e in found if is_call(e)).values()) == {1}
    assert set(Counter((e.session, e.call) for e in found if e.type == "tool/result").values()) == {1}


async def test_a_call_at_a_closed_gate_is_on_record(tmp_path: Path) -> None:
    """It entered, and it was refused."""

    def broken(ctx: Any) -> None:
        async def crash() -> None:
            raise RuntimeError("boom")

        ctx.start_soon(crash)

    async with open_host(config(tmp_path), plugins=[Tools(), broken]) as host:
        await trio.testing.wait_all_tasks_blocked(0.05)
        await call(host, "echo", text="hi")
    assert results(tmp_path)["c1"]["code"] == "GATE_CLOSED"


async def test_a_log_that_is_full_refuses_calls(tmp_path: Path) -> None:
    """The body does not run, and what is on record stays."""
    async with open_host(config(tmp_path), plugins=[Tools()]) as host:
        await call(host, "echo", "good", text="hi")
        await host.ctx.get("sessions")._store.run(lambda db: db.execute("PRAGMA max_page_count = 1").fetchall())
        refused = await call(host, "echo", "full", text="x" * 100_000)
        after = await call(host, "echo", "after", text="hi")
    assert (refused.error.info.code, after.error.info.code) == ("LOG_UNAVAILABLE", "LOG_UNAVAILABLE")
    assert "the disk is full" in refused.error.message
    assert list(results(tmp_path)) == ["good"]


async def test_what_a_redactor_masks_does_not_reach_the_log(tmp_path: Path) -> None:
    """In names and values of arguments, nested ones, content, messages of errors, labels and the tool's own views."""
    async with open_host(config(tmp_path, {"id": "redact", "use": "redact"}), plugins=[Tools()]) as host:
        agent = host.ctx.scope().key
        session = await host.ctx.get("sessions").open_session(agent, label=f"for {SECRET}", front_door="test")
        deep = {"deep": [{SECRET: 1, "api_key": "opensesame"}]}
        await call(host, "login", "c1", agent, password="hunter2", more=deep)
        await call(host, "echo", "c2", agent, text=f"take {SECRET}")
        await call(host, "fail", "c3", agent, text=f"token={SECRET}")
        await call(host, f"tool-{SECRET}", "c4", agent)
        await session.close()
    assert [word for word in (SECRET, "hunter2", "opensesame") if word.encode() in everything(tmp_path)] == []
    assert results(tmp_path)["c1"]["views"]["completed"]["title"].startswith("Logged in with [redacted")


@pytest.mark.parametrize("in_front", [False, True], ids=["behind", "in front"])
async def test_what_plugins_say_before_the_redactor_is_there_is_withheld(tmp_path: Path, in_front: bool) -> None:
    """Wherever it stands in the config; afterwards it is masked."""
    (tmp_path / "broken.py").write_text(f"def apply(ctx):\n    raise ValueError('cannot use {SECRET}')\n")
    rows = [
        {"id": "broken", "use": str(tmp_path / "broken.py"), "optional": True},
        {"id": "redact", "use": "redact"},
    ]
    async with open_host(config(tmp_path, *(rows[::-1] if in_front else rows)), plugins=[Tools()]):
        pass
    (tmp_path / "broken.py").unlink()
    assert SECRET.encode() not in everything(tmp_path)
    [failed] = [e.payload for e in events(tmp_path) if e.type == "plugin/state" and e.payload["state"] == "failed"]
    assert (failed["plugin"], failed["name"]) == ("broken", "broken")
    assert ("redacted" if in_front else "withheld") in failed["error"]


async def test_without_a_redactor_nothing_is_withheld(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def apply(ctx):\n    raise ValueError('no luck')\n")
    row = {"id": "broken", "use": str(tmp_path / "broken.py"), "optional": True}
    async with open_host(config(tmp_path, row), plugins=[Tools()]):
        pass
    [failed] = [e.payload for e in events(tmp_path) if e.type == "plugin/state" and e.payload["state"] == "failed"]
    assert failed["error"] == "ValueError: no luck"


async def test_a_redactor_that_goes_is_still_asked(tmp_path: Path) -> None:
    """Calls that are under way when it goes are masked all the same, and the log is not opened again."""
    row = {"id": "redact", "use": "redact", "optional": True}
    async with open_host(config(tmp_path, row), plugins=[Tools()]) as host:
        await call(host, "echo", "before", text=SECRET)
        [redact] = [plugin.fiber for plugin in host.plugins if plugin.id == "redact"]
        assert redact is not None
        await redact.dispose()
        await call(host, "echo", "after", text=SECRET)
    assert SECRET.encode() not in everything(tmp_path)
    assert set(results(tmp_path)) == {"before", "after"}


async def test_the_record_names_the_tools_plugin_and_keeps_its_views(tmp_path: Path) -> None:
    """A tool without views of its own costs nothing more."""
    async with open_host(config(tmp_path), plugins=[Tools()]) as host:
        await call(host, "login", "c1", password="x")
        await call(host, "echo", "c2", text="hi")
    [first] = [event for event in events(tmp_path) if is_call(event) and event.payload["call_id"] == "c1"]
    assert first.payload["plugin"] == "tools-of-tests"
    assert results(tmp_path)["c1"]["views"] == {
        "pending": {"state": "pending", "card": "generic", "title": "Log in with x"},
        "completed": {"state": "completed", "card": "generic", "title": "Logged in with x"},
    }
    assert "views" not in results(tmp_path)["c2"]


async def test_an_agent_has_one_open_session(tmp_path: Path) -> None:
    """Its calls are there, those of others in that of the process."""
    async with open_host(config(tmp_path), plugins=[Tools()]) as host:
        agent = host.ctx.scope().key
        session = await host.ctx.get("sessions").open_session(agent, label="mine", front_door="test")
        with pytest.raises(HarnessError, match="has the open session"):
            await host.ctx.get("sessions").open_session(agent, label="again", front_door="test")
        await call(host, "echo", "mine", agent, text="hi")
        await call(host, "echo", "other", text="hi")
        await session.close()
    with Reader(tmp_path / "log.db") as reader:
        assert reader.find_call("mine").info.session == session.id
        assert reader.find_call("oth").info.session != session.id
        assert [found.front_door for found in reader.sessions()] == ["test", "host"]


async def test_calls_inside_a_call_are_found_with_it(tmp_path: Path) -> None:
    """At every depth, in order, and no others."""

    class Nesting:
        name = "nesting"
        inject = ("tools",)

        def apply(self, ctx: Any) -> None:
            async def nest(args: Any, exec: Any) -> str:
                for number in range(args["width"]):
                    inner = ToolExecutionInput(
                        f"{exec.call_id}:{number}", "nest", {"width": args["width"] - 1}, exec.signal,
                        exec.agent, exec.token, exec.root_call_id,
                    )  # fmt: skip
                    await ctx.tools.execute(inner)
                return "done"

            width = {"width": {"type": "integer", "required": True}}
            ctx.tools.register(
                define_tool(name="nest", description="Nest.", parameters=width, output={"type": "string"}, execute=nest)
            )

    async with open_host(config(tmp_path), plugins=[Nesting()]) as host:
        await call(host, "nest", "top", width=2)
        await call(host, "nest", "other", width=1)
    with Reader(tmp_path / "log.db") as reader:
        inside = reader.nested(reader.find_call("top"))
        assert [record.info.call_id for record in inside] == ["top:0", "top:0:0", "top:1", "top:1:0"]
        assert [record.info.call_id for record in reader.nested(reader.find_call("top:1"))] == ["top:1:0"]


async def test_who_answered_for_a_person_is_on_record(tmp_path: Path) -> None:
    """Asked and decided stand between the call and its result, in order, with the channel that answered."""

    def gate(ctx: Any) -> None:
        ctx.on("tools/pre-execute", lambda exec, next: Ask("sure?"))

    def person(ctx: Any) -> None:
        ctx.on("approval/request", lambda request, next: "rejected")

    async with open_host(config(tmp_path), plugins=[Tools(), gate, person]) as host:
        await call(host, "echo", text="hi")
    with Reader(tmp_path / "log.db") as reader:
        record = reader.find_call("c1")
    assert [event.type for event in record.events] == [
        "tool/call",
        "approval/asked",
        "approval/decided",
        "tool/result",
    ]
    assert record.events[1].payload["reason"] == "sure?"
    decided = record.events[2].payload
    assert (decided["outcome"], decided["channel"]) == ("rejected", "person")
    assert record.info.code == "APPROVAL_REJECTED"


async def test_a_dry_run_leaves_no_trace(tmp_path: Path) -> None:
    """Policy is asked, and nothing has happened."""
    async with open_host(config(tmp_path), plugins=[Tools()]) as host:
        asked = ToolExecutionInput("c1", "echo", {"text": "hi"}, AbortController().signal, host.ctx.scope().key)
        assert (await host.ctx.tools.foresee(asked)).verdict == "allow"
    assert [event for event in events(tmp_path) if is_call(event)] == []


async def test_a_projector_that_fails_costs_its_view_alone(tmp_path: Path) -> None:
    """The call is on record all the same, with the generic view."""

    def broken(ctx: Any) -> None:
        def fail(args: Any) -> Any:
            raise RuntimeError("no view today")

        definition = define_tool(
            name="odd",
            description="Be odd.",
            parameters={},
            output={"type": "string"},
            execute=lambda args: "done",
            present_call=fail,
        )
        ctx.tools.register(definition)

    broken.inject = ["tools"]  # type: ignore[attr-defined]
    async with open_host(config(tmp_path), plugins=[broken]) as host:
        assert (await call(host, "odd")).value == "done"
    assert results(tmp_path)["c1"]["views"]["pending"]["card"] == "generic"
