"""Spans and metrics of calls in a host, as the SDK's exporters in memory see them."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dsh_plugin_otel
import pytest
import trio
from dsh_hookspecs import AbortController, ApprovalRequest, Ask, Block, Deny, HarnessError
from opentelemetry import metrics, trace
from trio.testing import MockClock

from dsh_runtime import HostError, ToolExecutionInput, define_tool, open_host

pytest.importorskip("opentelemetry.sdk", reason="the tests look at spans with the SDK: opentelemetry-sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions
from opentelemetry.trace import StatusCode


class Record(SpanProcessor):
    """Every span that has begun, and every one that has ended."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.begun.append(span)

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)

    def named(self, name: str) -> Any:
        [span] = [span for span in self.ended if span.name == name]
        return span

    def all_ended(self) -> bool:
        return bool(self.begun) and len(self.begun) == len(self.ended)


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    provider, record = TracerProvider(shutdown_on_exit=False), Record()
    provider.add_span_processor(record)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return record


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    return reader


class Host:
    """A host with the plugin; its tools are made from their bodies."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx

    def add(self, execute: Callable[..., Any], name: str = "work") -> None:
        tool: Any = define_tool(
            name=name, description=f"to {name}", parameters={}, output={"type": "string"}, execute=execute
        )
        self.ctx.tools.register(tool)

    async def call(self, name: str = "work", arguments: Any = None, **more: Any) -> Any:
        signal = more.pop("signal", None) or AbortController().signal
        return await self.ctx.tools.execute(ToolExecutionInput("c1", name, arguments or {}, signal, **more))


@asynccontextmanager
async def traced(*, redact: bool = False, **config: Any) -> AsyncIterator[Host]:
    rows: list[Any] = [{"id": "redact", "use": "redact"}] if redact else []
    async with open_host({"plugin": [*rows, {"id": "otel", "use": "otel", "config": config}]}) as host:
        yield Host(host.ctx)


async def say(args: Any, exec: Any) -> str:
    return "password=" + "hunter2"


def parent_of(span: Any) -> Any:
    return span.parent.span_id if span.parent is not None else None


@pytest.mark.trio
async def test_a_call_is_a_span_with_a_child_for_each_stage(record: Record) -> None:
    async with traced() as host:
        host.add(say)
        await host.call()
    call = record.named("execute_tool work")
    assert {span.name for span in record.ended} - {"execute_tool work"} == {
        "tools/pre-execute", "tools/execute", "tools/post-execute",
    }  # fmt: skip
    assert {parent_of(span) for span in record.ended if span is not call} == {call.context.span_id}
    assert call.status.status_code is StatusCode.UNSET
    assert record.all_ended()


@pytest.mark.trio
async def test_attributes_have_the_names_of_the_conventions(record: Record) -> None:
    async with traced() as host:
        host.add(say)
        await host.call(agent="ada")
    attributes = record.named("execute_tool work").attributes
    expected = {
        conventions.GEN_AI_OPERATION_NAME: "execute_tool",
        conventions.GEN_AI_TOOL_NAME: "work",
        conventions.GEN_AI_TOOL_TYPE: "function",
        conventions.GEN_AI_TOOL_DESCRIPTION: "to work",
        conventions.GEN_AI_TOOL_CALL_ID: "c1",
        conventions.GEN_AI_AGENT_ID: "ada",
        "dsh.root_call.id": "c1",
    }
    assert expected.items() <= attributes.items()
    assert attributes.keys() - expected.keys() == {"dsh.call.digest"}


@pytest.mark.trio
async def test_a_nested_calls_span_is_a_child_of_its_parents(record: Record) -> None:
    async with traced() as host:

        async def outer(args: Any, exec: Any) -> str:
            # In a context of its own, so that nothing but the token tells where the call belongs.
            done: list[Any] = []

            async def inner() -> None:
                done.append(await host.call("inner", parent=exec.token, root_call_id=exec.root_call_id))

            with trace.use_span(trace.INVALID_SPAN):
                await inner()
            return str(done[0].value)

        host.add(outer)
        host.add(say, "inner")
        await host.call()
    outer_span, inner_span = record.named("execute_tool work"), record.named("execute_tool inner")
    assert parent_of(inner_span) == outer_span.context.span_id
    assert inner_span.context.trace_id == outer_span.context.trace_id


@pytest.mark.trio
async def test_a_top_level_calls_span_is_a_child_of_the_current_one(record: Record) -> None:
    tracer = trace.get_tracer_provider().get_tracer("test")
    async with traced() as host:
        host.add(say)
        with tracer.start_as_current_span("turn") as turn:
            await host.call()
    assert parent_of(record.named("execute_tool work")) == turn.get_span_context().span_id


@pytest.mark.trio
async def test_a_call_that_comes_over_mcp_says_so(record: Record) -> None:
    tracer = trace.get_tracer_provider().get_tracer("test")
    async with traced() as host:
        host.add(say)
        about = {"mcp.method.name": "tools/call", "mcp.session.id": "s1", "other": "x"}
        with tracer.start_as_current_span("tools/call work", attributes=about):
            await host.call()
    attributes = record.named("execute_tool work").attributes
    assert (attributes["mcp.method.name"], attributes["mcp.session.id"]) == ("tools/call", "s1")
    assert "other" not in attributes


@pytest.mark.trio
async def test_what_a_body_traces_is_a_child_of_its_stage(record: Record) -> None:
    async with traced() as host:

        async def execute(args: Any, exec: Any) -> str:
            with trace.get_tracer_provider().get_tracer("test").start_as_current_span("fetch"):
                return "done"

        host.add(execute)
        await host.call()
    assert parent_of(record.named("fetch")) == record.named("tools/execute").context.span_id


@pytest.mark.trio
@pytest.mark.parametrize(
    ("error", "code"), [(HarnessError("no", code="NO_LUCK"), "NO_LUCK"), (ZeroDivisionError("no"), "ZeroDivisionError")]
)
async def test_a_failure_is_the_status_of_its_span(record: Record, error: Exception, code: str) -> None:
    async def execute(args: Any, exec: Any) -> str:
        raise error

    async with traced() as host:
        host.add(execute)
        await host.call()
    for name in ("execute_tool work", "tools/execute"):
        span = record.named(name)
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes["error.type"] == code
        assert span.status.description == code


@pytest.mark.trio
async def test_decisions_stand_on_the_spans_of_their_stages(record: Record) -> None:
    async def person(request: ApprovalRequest) -> str:
        return "allowed-once"

    async with traced() as host:
        host.add(say)
        host.ctx.on("tools/pre-execute", lambda: Ask("sure?"))
        host.ctx.on("tools/post-execute", lambda: Block("no"))
        host.ctx.on("approval/request", person)
        await host.call(agent="ada")
    stages = ("tools/pre-execute", "approval/request", "tools/post-execute")
    assert [record.named(stage).attributes["dsh.decision"] for stage in stages] == ["ask", "allowed-once", "block"]
    assert record.named("execute_tool work").attributes["error.type"] == "BLOCKED"


@pytest.mark.trio
async def test_a_denied_call_names_the_plugin_that_decided(record: Record) -> None:
    gate = SimpleNamespace(name="gate", apply=lambda ctx: ctx.on("tools/pre-execute", lambda: Deny("no")))
    async with open_host({"plugin": [{"id": "otel", "use": "otel"}]}, plugins=[gate]) as opened:
        host = Host(opened.ctx)
        host.add(say)
        await host.call()
    attributes = record.named("execute_tool work").attributes
    assert (attributes["error.type"], attributes["dsh.error.plugin"]) == ("DENIED", "gate")


@pytest.mark.trio
async def test_a_call_that_never_reached_policy_has_its_span_all_the_same(record: Record) -> None:
    controller = AbortController()
    controller.abort()
    async with traced() as host:
        host.add(say)
        await host.call(signal=controller.signal)
        await host.call(arguments={"x": {1, 2}})
        await host.call("nothing")
    codes = [span.attributes["error.type"] for span in record.ended if span.name.startswith("execute_tool")]  # type: ignore[index]
    assert codes == ["ABORTED_BEFORE_DISPATCH", "INVALID_ARGS", "UNKNOWN_TOOL"]
    assert record.all_ended()


@pytest.mark.trio
async def test_a_cancelled_call_leaves_no_span_open(record: Record, autojump_clock: MockClock) -> None:
    async def execute(args: Any, exec: Any) -> str:
        await trio.sleep(60)
        return "done"

    async with traced() as host:
        host.add(execute)
        with trio.move_on_after(1):
            await host.call()
    assert record.named("execute_tool work").attributes["error.type"] == "ABORTED"
    assert record.named("tools/execute").attributes["error.type"] == "Cancelled"
    assert record.all_ended()


@pytest.mark.trio
@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/execute", "tools/post-execute", "tools/result"])
async def test_a_listener_that_crashes_leaves_no_span_open(record: Record, event: str) -> None:
    def crash() -> None:
        raise RuntimeError("broken")

    async with traced() as host:
        host.add(say)
        host.ctx.on(event, crash)
        await host.call()
    assert record.all_ended()


def test_an_interrupt_leaves_no_span_open(record: Record) -> None:
    async def execute(args: Any, exec: Any) -> str:
        raise KeyboardInterrupt

    async def main() -> None:
        async with traced() as host:
            host.add(execute)
            await host.call()

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert record.all_ended()


@pytest.mark.trio
async def test_unloading_while_a_call_runs_leaves_no_span_open(record: Record) -> None:
    began, go_on = trio.Event(), trio.Event()

    async def execute(args: Any, exec: Any) -> str:
        began.set()
        await go_on.wait()
        return "done"

    async with open_host() as opened, trio.open_nursery() as nursery:
        host = Host(opened.ctx)
        fiber = opened.ctx.plugin(dsh_plugin_otel)
        await fiber.wait()
        host.add(execute)
        nursery.start_soon(host.call)
        await began.wait()
        fiber.dispose()
        go_on.set()
    assert record.all_ended()
    assert record.named("execute_tool work").status.status_code is StatusCode.UNSET


@pytest.mark.trio
async def test_nothing_of_arguments_content_or_messages_is_recorded_unless_asked_for(record: Record) -> None:
    async def execute(args: Any, exec: Any) -> str:
        raise RuntimeError("about private matters")

    async with traced(redact=True) as host:
        host.add(execute)
        await host.call(arguments={"note": "private matters"})
    assert all("private" not in f"{span.attributes} {span.status.description}" for span in record.ended)
    assert all(not span.events for span in record.ended)


@pytest.mark.trio
async def test_what_is_recorded_is_masked_and_bounded(record: Record) -> None:
    async with traced(redact=True, arguments=True, content=True, limit=40) as host:
        host.add(say)
        await host.call(arguments={"token": "hunter2", "long": "x" * 100})
    attributes = record.named("execute_tool work").attributes
    assert attributes["gen_ai.tool.call.arguments"].startswith('{"token": "[redacted: secret]"')
    assert "hunter2" not in str(attributes)
    assert all(len(attributes[f"gen_ai.tool.call.{part}"]) == 40 for part in ("arguments", "result"))


@pytest.mark.trio
async def test_a_secret_in_place_of_a_name_or_an_id_is_masked(record: Record, reader: InMemoryMetricReader) -> None:
    """A model may call anything, and a client may name its calls as it likes."""
    token = "ghp_" + "aB3" * 13
    async with traced(redact=True) as host:
        call = ToolExecutionInput(token, token, {}, AbortController().signal, agent=token)
        await host.ctx.tools.execute(call)
    assert token not in "".join(f"{span.name} {span.attributes}" for span in record.ended)
    assert record.named("execute_tool [redacted: github-token]").attributes["gen_ai.agent.id"].startswith("[redacted")
    assert token not in str(points(reader, "dsh.tool.calls"))


@pytest.mark.trio
async def test_a_redactor_that_comes_later_is_used_too(record: Record) -> None:
    rows: list[Any] = [{"id": "otel", "use": "otel", "config": {"content": True}}, {"id": "redact", "use": "redact"}]
    async with open_host({"plugin": rows}) as opened:
        host = Host(opened.ctx)
        host.add(say)
        await host.call()
    assert "password=[redacted: secret]" in record.named("execute_tool work").attributes["gen_ai.tool.call.result"]


@pytest.mark.trio
async def test_a_dry_run_is_no_call(record: Record, reader: InMemoryMetricReader) -> None:
    heard: dict[str, Any] = {}
    ctx: Any = SimpleNamespace(on=lambda event, fn, **options: heard.update({event: fn}), get=lambda name: None)
    dsh_plugin_otel.apply(ctx, dsh_plugin_otel.Config())
    would: Any = SimpleNamespace(dry_run=True)

    async def behind() -> Deny:
        return Deny("no")

    assert await heard["tools/pre-execute"](would, behind) == Deny("no")
    heard["tools/result"](would, None)
    assert record.begun == []
    assert points(reader, "dsh.tool.calls") == {}


@pytest.mark.trio
async def test_the_message_of_a_failure_counts_as_content(record: Record) -> None:
    async def execute(args: Any, exec: Any) -> str:
        raise RuntimeError("login with password=" + "hunter2")

    async with traced(redact=True, content=True) as host:
        host.add(execute)
        await host.call()
    assert record.named("execute_tool work").status.description == "login with password=[redacted: secret]"


@pytest.mark.trio
async def test_without_a_redactor_a_note_stands_in_place_of_the_data(record: Record) -> None:
    async with traced(arguments=True, content=True) as host:
        host.add(say)
        await host.call(arguments={"note": "private"})
    attributes = record.named("execute_tool work").attributes
    assert "private" not in str(attributes)
    assert "no plugin provides the service 'redact'" in attributes["gen_ai.tool.call.arguments"]


def points(reader: InMemoryMetricReader, name: str) -> dict[tuple[str, str | None], Any]:
    """The points of a metric by tool and error."""
    data: Any = reader.get_metrics_data() or SimpleNamespace(resource_metrics=())
    return {
        (point.attributes["gen_ai.tool.name"], point.attributes.get("error.type")): point
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
    }


@pytest.mark.trio
async def test_calls_durations_and_errors_are_counted(reader: InMemoryMetricReader) -> None:
    async with traced() as host:
        host.add(say)
        await host.call()
        await host.call()
        host.ctx.on("tools/pre-execute", lambda: Deny("no"))
        await host.call()
        await host.call("made-up")
    calls, errors = points(reader, "dsh.tool.calls"), points(reader, "dsh.tool.errors")
    assert {key: point.value for key, point in calls.items()} == {
        ("work", None): 2, ("work", "DENIED"): 1, ("_OTHER", "DENIED"): 1,
    }  # fmt: skip
    assert {key: point.value for key, point in errors.items()} == {("work", "DENIED"): 1, ("_OTHER", "DENIED"): 1}
    assert points(reader, "gen_ai.execute_tool.duration")["work", None].count == 2


@pytest.mark.trio
async def test_a_tool_that_does_not_exist_is_no_dimension_of_its_own(reader: InMemoryMetricReader) -> None:
    async with traced() as host:
        await host.call("made-up-1")
        await host.call("made-up-2")
    assert {key: point.value for key, point in points(reader, "dsh.tool.calls").items()} == {
        ("_OTHER", "UNKNOWN_TOOL"): 2
    }


@pytest.mark.trio
async def test_without_providers_nothing_is_registered() -> None:
    registered: list[str] = []
    ctx: Any = SimpleNamespace(on=lambda event, *args, **options: registered.append(event), effect=registered.append)
    dsh_plugin_otel.apply(ctx, dsh_plugin_otel.Config())
    assert registered == []
    async with traced() as host:
        host.add(say)
        assert not (await host.call()).is_error


@pytest.mark.trio
async def test_own_exporters_are_flushed_when_the_plugin_goes(capfd: pytest.CaptureFixture[str]) -> None:
    async with traced(export="console", service="mine") as host:
        host.add(say)
        await host.call()
    out, err = capfd.readouterr()
    assert out == ""
    assert '"name": "execute_tool work"' in err
    assert "gen_ai.execute_tool.duration" in err
    assert '"service.name": "mine"' in err


@pytest.mark.trio
async def test_an_exporter_that_is_not_installed_stops_the_start_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(HostError, match=r"pip install 'dsh-plugin-otel\[sdk\]'"):
        async with traced(export="otlp"):
            pass  # pragma: no cover


@pytest.mark.trio
@pytest.mark.parametrize("config", [{"export": "file"}, {"limit": 1}, {"argument": True}])
async def test_a_config_with_a_mistake_stops_the_start(config: dict[str, Any]) -> None:
    with pytest.raises(HostError):
        async with traced(**config):
            pass  # pragma: no cover


@pytest.mark.trio
async def test_the_readmes_config_is_taken() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    async with open_host(tomllib.loads(readme.partition("```toml\n")[2].partition("```")[0])):
        pass
