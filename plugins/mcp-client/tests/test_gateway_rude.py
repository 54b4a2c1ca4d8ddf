"""Servers that do what they must not: each costs itself, and nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from dsh_plugin_mcp_client._errors import McpInputRequiredError
from dsh_plugin_mcp_client._results import outcome_of
from gateway_kit import code, entry, gateway, row

from dsh_runtime import HostError, open_host


async def start(folder: Path, how: str, **config: Any) -> str:
    """What a host says that cannot start because of its server."""
    with pytest.raises(HostError) as caught, trio.fail_after(20):
        rows = [row("rude", folder, how, **config)]
        async with open_host({"host": {"log": {"enabled": False}}, "plugin": rows}):
            pass
    return str(caught.value)


async def test_a_server_that_never_greets_stops_the_start_in_time(tmp_path: Path) -> None:
    assert "did not greet within 0.3 s" in await start(tmp_path, "mute", connect_timeout=0.3)


async def test_a_server_that_ends_at_once_stops_the_start(tmp_path: Path) -> None:
    assert "is not there" in await start(tmp_path, "dies-at-once")


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = await start(tmp_path, "polite", command=["no-such-program"])
    assert "no program 'no-such-program' is found" in message


async def test_a_list_without_end_is_refused(tmp_path: Path) -> None:
    assert "in circles" in await start(tmp_path, "lists-in-circles")


async def test_too_many_tools_are_refused(tmp_path: Path) -> None:
    tools = [entry(f"t{n}") for n in range(11)]
    assert "more than 10 tools" in await start(tmp_path, "polite", tools=tools, max_tools=10)


async def test_a_list_that_is_too_long_over_many_pages_is_refused(tmp_path: Path) -> None:
    tools = [entry(f"t{n}", description="x" * 500) for n in range(50)]
    assert "more than 10,000 bytes" in await start(tmp_path, "pages", tools=tools, max_message_bytes=10_000)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"description": "nameless", "inputSchema": {}}, "has no name"),
        ({"name": "", "inputSchema": {}}, "has no name"),
        (entry("bad", description=3), "no text"),
        (entry("echo"), "listed twice"),
        ("text", "has no name"),
    ],
)
async def test_an_entry_that_is_no_tool_is_left_out_alone(
    tmp_path: Path, wrong: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path, tools=[entry("echo"), wrong]) as gate:
        assert gate.names() == ["echo"]
    assert why in caplog.text


async def test_in_the_background_a_server_may_be_late(tmp_path: Path) -> None:
    async with gateway(tmp_path, "dies-at-once", start="background") as gate:
        assert gate.names() == []


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "objct"}, "is invalid"),
        ({"$ref": "http://example.test/schema"}, "leaves the document"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "leaves the document"),
        ({"description": "x" * 2000}, "bytes, more than"),
        ([], "no object"),
        (None, "no object"),
    ],
)
async def test_a_tool_that_cannot_be_judged_is_left_out_alone(
    tmp_path: Path, schema: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    tools = [entry("bad", inputSchema=schema), entry("echo")]
    async with gateway(tmp_path, tools=tools, max_schema_bytes=1000) as gate:
        assert gate.names() == ["echo"]
    assert "'bad'" in caplog.text
    assert why in caplog.text


async def test_a_list_that_is_nested_too_deep_is_no_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"properties": {"a": deep}}
    message = await start(tmp_path, "polite", tools=[entry("deep", inputSchema=deep)])
    assert "MCP server 'rude' answered against the protocol: its answer cannot be read" in message
    assert "no message" in caplog.text


async def test_a_schema_that_refers_to_itself_without_end_refuses_the_call(tmp_path: Path) -> None:
    tools = [entry("echo", inputSchema={"type": "object", "$ref": "#"})]
    async with gateway(tmp_path, tools=tools) as gate:
        assert code(await gate.call("echo")) == "INVALID_ARGS"


async def test_a_reference_that_leads_nowhere_refuses_the_call(tmp_path: Path) -> None:
    tools = [entry("echo", inputSchema={"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}})]
    async with gateway(tmp_path, tools=tools) as gate:
        assert code(await gate.call("echo", a=1)) == "INVALID_ARGS"


@pytest.mark.parametrize(
    "keywords",
    [
        {"properties": {"a": {"pattern": "^(a|aa)+$"}}},
        {"patternProperties": {"^(a|aa)+$": {}}},
        {"patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False},
    ],
)
async def test_a_pattern_without_end_refuses_the_call(tmp_path: Path, keywords: dict[str, Any]) -> None:
    evil = "a" * 60 + "!"
    async with gateway(tmp_path, tools=[entry("echo", inputSchema={"type": "object", **keywords})]) as gate:
        assert code(await gate.call("echo", **{"a": evil, evil: 1})) == "INVALID_ARGS"


async def test_a_tool_may_not_take_the_name_of_code_mode(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with gateway(tmp_path, tools=[entry("run_code"), entry("echo")], start="background") as gate:
        await gate.until(lambda: gate.names() == ["echo"])
    assert "reserved" in caplog.text


async def test_rubbish_between_messages_is_passed_over(tmp_path: Path) -> None:
    async with gateway(tmp_path) as gate:
        assert code(await gate.call("rubbish")) is None


async def test_too_much_rubbish_ends_the_connection(tmp_path: Path) -> None:
    async with gateway(tmp_path) as gate:
        assert code(await gate.call("too-much-rubbish")) == "MCP_SERVER_GONE"
        await gate.until(lambda: gate.names() == [])
        await gate.until(lambda: "echo" in gate.names())


async def test_a_message_that_is_too_long_ends_the_connection(tmp_path: Path) -> None:
    async with gateway(tmp_path, max_message_bytes=10_000) as gate:
        assert code(await gate.call("long", bytes=20_000)) == "MCP_SERVER_GONE"
        await gate.until(lambda: gate.names() == [])
        await gate.until(lambda: "echo" in gate.names())
        assert code(await gate.call("long", bytes=5_000)) is None


async def test_a_second_answer_goes_nowhere(tmp_path: Path) -> None:
    async with gateway(tmp_path) as gate:
        assert (await gate.call("twice")).content[0]["text"] == "first"
        assert (await gate.call("echo", a=1)).content[0]["text"] == '{"a": 1}'


ANSWER = '{"jsonrpc":"2.0","id":$ID,"result":%s}\n'
FINE = ANSWER % '{"content":[{"type":"text","text":"fine"}]}'

#: What a server writes, and the code that the call ends with.
WRITTEN: dict[str, tuple[str, str | None]] = {
    "a number that JSON cannot carry": (ANSWER % '{"content":[],"structuredContent":{"a":NaN}}', "INVALID_TOOL_OUTPUT"),
    "an infinite number": (ANSWER % '{"content":[],"structuredContent":{"a":1e999}}', "INVALID_TOOL_OUTPUT"),
    "a lone surrogate": (ANSWER % '{"content":[{"type":"text","text":"\\ud800"}]}', "MCP_PROTOCOL"),
    "a number of 5000 digits": (
        ANSWER % ('{"content":[],"structuredContent":{"a":%s}}' % ("9" * 5000)),
        "MCP_PROTOCOL",
    ),
    "an answer nested too deep": (ANSWER % ("[" * 5000 + "]" * 5000), "MCP_PROTOCOL"),
    "no result": (ANSWER % "null", "MCP_PROTOCOL"),
    "a list": (ANSWER % "[]", "MCP_PROTOCOL"),
    "nothing in it": (ANSWER % "{}", "MCP_PROTOCOL"),
    "structured content that is no object": (ANSWER % '{"content":[],"structuredContent":[1]}', "MCP_PROTOCOL"),
    "an error that is a text": ('{"jsonrpc":"2.0","id":$ID,"error":"no"}\n', "MCP_PROTOCOL"),
    "the SDK's code of a closed connection": (
        '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"no"}}\n',
        "MCP_REFUSED",
    ),
    "the SDK's code of a timeout": (
        '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"no"}}\n',
        "MCP_REFUSED",
    ),
    "a batch before the answer": ('[{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}]\n' + FINE, None),
    "an answer without an id": ('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}\n' + FINE, None),
    "an answer to a call of nobody": ('{"jsonrpc":"2.0","id":123456,"result":{"content":[]}}\n' + FINE, None),
    "progress that is no number": (
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":"x"}}\n' + FINE,
        None,
    ),
    "progress without end": (
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1e999}}\n' + FINE,
        None,
    ),
    "a change of wrong shape": (
        '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":3}}\n' + FINE,
        None,
    ),
}


@pytest.mark.parametrize(("written", "expected"), WRITTEN.values(), ids=WRITTEN)
async def test_what_a_server_writes_harms_its_own_call_at_most(
    tmp_path: Path, written: str, expected: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path) as gate:
        assert code(await gate.call("raw", text=written)) == expected
        assert code(await gate.call("echo")) is None
    assert "Traceback" not in caplog.text


async def test_a_server_that_ends_in_mid_answer_is_gone(tmp_path: Path) -> None:
    async with gateway(tmp_path) as gate, trio.open_nursery() as nursery:
        results: list[Any] = []

        async def call() -> None:
            results.append(await gate.call("raw", text='{"jsonrpc":"2.0","id":$ID,"res'))

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked(0.02)
        await gate.call("die")
        await gate.until(lambda: bool(results))
    assert code(results[0]) == "MCP_SERVER_GONE"


ASKED = ("elicitation/create", "sampling/createMessage", "roots/list", "no/such")


async def test_a_server_that_asks_for_something_is_told_that_there_is_nothing(tmp_path: Path) -> None:
    asked = "".join(f'{{"jsonrpc":"2.0","id":"{n}","method":"{n}","params":{{}}}}\n' for n in (*ASKED, "ping"))
    async with gateway(tmp_path) as gate:
        assert code(await gate.call("raw", text=asked + FINE)) is None
        told = {each["id"]: "error" in each for each in (await gate.call("told")).value["told"]}
    assert told == {**dict.fromkeys(ASKED, True), "ping": False}


def test_a_call_that_wants_input_of_a_user_fails() -> None:
    with pytest.raises(McpInputRequiredError):
        outcome_of({"resultType": "input_required", "inputRequests": {}, "requestState": "x"}, "tool 'x'")


async def test_a_server_that_asks_without_end_and_reads_no_answers_is_given_up(tmp_path: Path) -> None:
    async with gateway(tmp_path) as gate:
        asking = '{"jsonrpc":"2.0","id":"a","method":"ping"}\n'
        assert code(await gate.call("raw", text=asking, times=50_000)) == "MCP_SERVER_GONE"
        await gate.until(lambda: gate.names() == [])
        await gate.until(lambda: "echo" in gate.names())


@pytest.mark.parametrize("method", ["notifications/message", "notifications/progress", "no/such"])
async def test_a_flood_of_notifications_goes_nowhere(
    tmp_path: Path, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(tmp_path) as gate:
        flood = f'{{"jsonrpc":"2.0","method":"{method}","params":{{"level":3}}}}\n'
        with trio.move_on_after(0.5):
            await gate.call("raw", text=flood, times=20_000)
        assert code(await gate.call("echo")) is None
    assert len(caplog.records) < 10


NO_ANSWERS: list[Any] = [{"content": "text"}, {"content": [{"no": "type"}]}, {"content": [1]}, {"isError": 3}]


@pytest.mark.parametrize("result", NO_ANSWERS)
async def test_an_answer_against_the_protocol_is_refused(tmp_path: Path, result: Any) -> None:
    async with gateway(tmp_path) as gate:
        assert code(await gate.call("answer", result=result)) == "MCP_PROTOCOL"


async def test_an_error_of_the_protocol_is_the_calls_failure(tmp_path: Path) -> None:
    async with gateway(tmp_path, tools=[entry("unheard")]) as gate:
        result = await gate.call("unheard")
        assert code(result) == "MCP_REFUSED"
        assert "no tool unheard" in result.error.message


async def test_a_flood_on_stderr_is_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with gateway(tmp_path) as gate:
        assert code(await gate.call("flood-stderr")) is None
    assert 1 <= caplog.text.count("stderr: noise") <= 500
    assert "more lines within a second are left out" in caplog.text


async def test_tools_that_change_in_mid_call_leave_the_call_alone(tmp_path: Path) -> None:
    async with gateway(tmp_path, tools=[entry("never"), entry("change")], call_timeout=0.5) as gate:
        async with trio.open_nursery() as nursery:
            results: list[Any] = []

            async def call() -> None:
                results.append(await gate.call("never"))

            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked(0.02)
            await gate.call("change", tools=[entry("change")])
            await gate.until(lambda: gate.names() == ["change"])
        assert code(results[0]) == "MCP_TIMEOUT"


NO_PLACES: list[dict[str, Any]] = [
    {},
    {"command": ["x"], "url": "http://x"},
    {"command": []},
    {"url": "ftp://x"},
    {"command": ["x"], "headers": {"a": "b"}},
]


@pytest.mark.parametrize("config", NO_PLACES)
async def test_a_row_names_one_place(config: dict[str, Any]) -> None:
    rows = [{"id": "s", "use": "mcp-client", "config": config}]
    with pytest.raises(HostError, match=r"'command'|'url'"):
        async with open_host({"host": {"log": {"enabled": False}}, "plugin": rows}):
            pass
