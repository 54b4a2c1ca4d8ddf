"""A call that has to be approved, and a client that asks its own user."""

# ruff: noqa: A006

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
import trio
import trio.testing
from dsh_hookspecs import Ask
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

from dsh_runtime import ToolExecutionInput

Serve = Callable[..., AbstractAsyncContextManager[Any]]
ERAS = ("auto", "legacy")
ALLOW = ElicitResult(action="accept", content={"decision": "allow once"})


class User:
    """The client's user: sees questions, and answers as told."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.questions: list[mcp_types.ElicitRequestFormParams] = []
        self.left = False

    async def __call__(self, context: Any, params: Any) -> Any:
        self.questions.append(params)
        answer = self.answers.pop(0)
        if answer is not None:
            return answer
        try:
            await trio.sleep_forever()
        finally:
            self.left = True


class Body:
    """A tool that notes its runs."""

    def __init__(self) -> None:
        self.runs: list[Any] = []

    async def __call__(self, args: Any, exec: Any) -> Any:
        self.runs.append(args)
        return {"done": args}


def ask_about(served: Any, *names: str) -> Body:
    """Offer tools that have to be approved."""
    body = Body()
    for name in names:
        served.offer(name, body)

    async def gate(exec: Any, next: Callable[[], Any]) -> Any:
        return Ask("is it safe?") if exec.name in names else await next()

    served.ctx.on("tools/pre-execute", gate)
    return body


def results(served: Any, number: int) -> trio.Event:
    """Set when so many calls have had their result."""
    reached = trio.Event()

    def observe(exec: Any, result: Any) -> None:
        if len(served.seen) == number:
            reached.set()

    served.ctx.on("tools/result", observe)
    return reached


def codes(served: Any) -> list[str | None]:
    return [each.code for each in served.seen]


@pytest.mark.parametrize("mode", ERAS)
async def test_the_clients_user_may_allow_a_call(serve: Serve, mode: str) -> None:
    """It runs once and has one result, however many requests that took."""
    async with serve() as served:
        body, user = ask_about(served, "rm"), User(ALLOW)
        async with served.client(mode, elicitation_callback=user) as client:
            result = await client.call_tool("rm", {"path": "/tmp/x"})
        assert result.structured_content == {"done": {"path": "/tmp/x"}}
        assert body.runs == [{"path": "/tmp/x"}]
        assert codes(served) == [None]


@pytest.mark.parametrize("mode", ERAS)
async def test_the_question_says_what_it_is_about(serve: Serve, mode: str) -> None:
    """Tool, plugin, reason and arguments, and a form without a default."""
    async with serve() as served:
        ask_about(served, "rm")
        user = User(ALLOW)
        async with served.client(mode, elicitation_callback=user) as client:
            await client.call_tool("rm", {"path": "/tmp/x\x1b[2J", "text": "x" * 100_000})
        (question,) = user.questions
        for part in ("rm", "bystander", "is it safe?", '"path": "/tmp/x', "(this is not all)"):
            assert part in question.message
        assert "\x1b" not in question.message
        assert len(question.message) < 10_000
        (field,) = question.requested_schema["properties"].values()
        assert field["enum"] == ["allow once", "reject"]
        assert "default" not in field


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (ElicitResult(action="accept", content={"decision": "reject"}), "APPROVAL_REJECTED"),
        (ElicitResult(action="accept", content={"decision": "ALLOW ONCE"}), "APPROVAL_REJECTED"),
        (ElicitResult(action="accept", content={"decision": True}), "APPROVAL_REJECTED"),
        (ElicitResult(action="accept", content={}), "APPROVAL_REJECTED"),
        (ElicitResult(action="accept"), "APPROVAL_REJECTED"),
        (ElicitResult(action="decline"), "APPROVAL_REJECTED"),
        (ElicitResult(action="decline", content={"decision": "allow once"}), "APPROVAL_REJECTED"),
        (ElicitResult(action="cancel"), "APPROVAL_CANCELLED"),
    ],
    ids=str,
)
async def test_whatever_does_not_plainly_allow_denies(serve: Serve, mode: str, answer: Any, code: str) -> None:
    """The body does not run."""
    async with serve() as served:
        body = ask_about(served, "rm")
        async with served.client(mode, elicitation_callback=User(answer)) as client:
            assert (await client.call_tool("rm", {})).is_error
        assert codes(served) == [code]
        assert body.runs == []


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_cannot_ask_means_unavailable(serve: Serve, mode: str) -> None:
    async with serve() as served:
        body = ask_about(served, "rm")
        async with served.client(mode) as client:
            assert (await client.call_tool("rm", {})).is_error
        assert (codes(served), body.runs) == (["APPROVAL_UNAVAILABLE"], [])


@pytest.mark.parametrize("mode", ERAS)
async def test_elicitation_can_be_switched_off(serve: Serve, mode: str) -> None:
    """Then clients are not asked."""
    async with serve(elicitation=False) as served:
        ask_about(served, "rm")
        user = User(ALLOW)
        async with served.client(mode, elicitation_callback=user) as client:
            assert (await client.call_tool("rm", {})).is_error
        assert (codes(served), user.questions) == (["APPROVAL_UNAVAILABLE"], [])


async def test_a_client_that_fails_to_ask_means_unavailable(serve: Serve) -> None:
    """In the protocol of the handshake, where it can say so."""
    async with serve() as served:
        ask_about(served, "rm")
        error = mcp_types.ErrorData(code=-32603, message="no window")
        async with served.client("legacy", elicitation_callback=User(error)) as client:
            assert (await client.call_tool("rm", {})).is_error
        assert codes(served) == ["APPROVAL_UNAVAILABLE"]


async def test_a_client_that_fails_to_ask_leaves_the_question_to_its_deadline(
    serve: Serve, autojump_clock: Any
) -> None:
    """Since 2026 it says nothing: it does not come back."""
    async with serve(host={"approval_timeout": 5}) as served:
        body, over = ask_about(served, "rm"), results(served, 1)
        error = mcp_types.ErrorData(code=-32603, message="no window")
        async with served.client("auto", elicitation_callback=User(error)) as client:
            with pytest.raises(MCPError, match="no window"):
                await client.call_tool("rm", {})
            await over.wait()
        assert (codes(served), body.runs) == (["APPROVAL_EXPIRED"], [])


@pytest.mark.parametrize("mode", ERAS)
async def test_secrets_are_not_shown(serve: Serve, mode: str) -> None:
    """Where the host has a redactor."""

    class Redact:
        def text(self, text: str) -> str:
            return text.replace("hunter2", "****")

        def value(self, value: Any) -> Any:
            return json.loads(self.text(json.dumps(value)))

    async with serve() as served:
        served.ctx.provide("redact", Redact())
        body, user = ask_about(served, "login"), User(ALLOW)
        async with served.client(mode, elicitation_callback=user) as client:
            await client.call_tool("login", {"password": "hunter2"})
        assert "****" in user.questions[0].message
        assert "hunter2" not in user.questions[0].message
        assert body.runs == [{"password": "hunter2"}]


async def test_a_question_that_nobody_answers_expires(serve: Serve, autojump_clock: Any) -> None:
    """The client is told to take it away, and has its result."""
    async with serve(host={"approval_timeout": 5}) as served:
        ask_about(served, "rm")
        user = User(None)
        async with served.client("legacy", elicitation_callback=user) as client:
            assert (await client.call_tool("rm", {})).is_error
            await trio.testing.wait_all_tasks_blocked()
            assert user.left
        assert codes(served) == ["APPROVAL_EXPIRED"]


async def test_an_answer_that_comes_too_late_finds_the_result(serve: Serve, autojump_clock: Any) -> None:
    """Since 2026 the client learns of it when it comes back."""
    async with serve(host={"approval_timeout": 5}) as served:
        body, over = ask_about(served, "rm"), results(served, 1)

        async def slow(context: Any, params: Any) -> ElicitResult:
            await over.wait()
            return ALLOW

        async with served.client("auto", elicitation_callback=slow) as client:
            assert (await client.call_tool("rm", {})).is_error
        assert (codes(served), body.runs) == (["APPROVAL_EXPIRED"], [])


@pytest.mark.parametrize("mode", ERAS)
async def test_another_channel_may_answer_first(serve: Serve, mode: str) -> None:
    """The channels behind are asked at the same time."""
    async with serve() as served:
        body = ask_about(served, "rm")

        class Chat:
            name = "chat"

            def apply(self, ctx: Any) -> None:
                ctx.on("approval/request", lambda next: "allowed-once")

        await served.ctx.root.plugin(Chat()).wait()
        user = User(ElicitResult(action="decline"))
        async with served.client(mode, elicitation_callback=user) as client:
            assert not (await client.call_tool("rm", {})).is_error
        assert body.runs == [{}]


async def test_a_cancelled_request_is_asked_about_no_longer(serve: Serve) -> None:
    """The call ends as aborted, without its body."""
    async with serve() as served:
        body, user = ask_about(served, "rm"), User(None)
        async with served.client("legacy", elicitation_callback=user) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "rm", {})
            while not user.questions:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert (codes(served), body.runs) == (["ABORTED_BEFORE_DISPATCH"], [])


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_leaves_takes_its_question_along(serve: Serve, mode: str) -> None:
    async with serve() as served:
        body, user = ask_about(served, "rm"), User(None)
        with trio.CancelScope() as scope:
            async with served.client(mode, elicitation_callback=user) as client, trio.open_nursery() as nursery:
                nursery.start_soon(client.call_tool, "rm", {})
                while not user.questions:
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        assert (codes(served), body.runs) == (["ABORTED_BEFORE_DISPATCH"], [])


@pytest.mark.parametrize("mode", ERAS)
async def test_calls_that_a_call_makes_are_asked_about_too(serve: Serve, mode: str) -> None:
    """Two at a time, each for itself."""
    async with serve() as served:
        body = ask_about(served, "inner")
        ctx, codes_inside = served.ctx, {}

        async def call_inner(exec: Any, number: int) -> None:
            call = ToolExecutionInput(
                f"{exec.call_id}:code:{number}",
                "inner",
                {"number": number},
                exec.signal,
                agent=exec.agent,
                parent=exec.token,
                root_call_id=exec.root_call_id,
            )
            result = await ctx.tools.execute(call)
            codes_inside[number] = result.error.info.code if result.is_error else None

        async def outer(args: Any, exec: Any) -> Any:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(call_inner, exec, 1)
                nursery.start_soon(call_inner, exec, 2)
            return {}

        served.offer("outer", outer)

        async def user(context: Any, params: Any) -> ElicitResult:
            return ALLOW if '"number": 1' in params.message else ElicitResult(action="decline")

        async with served.client(mode, elicitation_callback=user) as client:
            assert not (await client.call_tool("outer", {})).is_error
        assert codes_inside == {1: None, 2: "APPROVAL_REJECTED"}
        assert body.runs == [{"number": 1}]


@pytest.mark.parametrize("mode", ERAS)
async def test_progress_is_told_after_a_question_as_ever(serve: Serve, mode: str) -> None:
    """On the request that waits at the time."""
    told: list[float] = []

    async def count(args: Any, exec: Any) -> Any:
        for done in (1, 2, 3):
            exec.progress(done)
        return {}

    async def tell(done: float, total: float | None, message: str | None) -> None:
        told.append(done)

    async with serve() as served:
        served.offer("count", count)
        served.ctx.on("tools/pre-execute", lambda exec, next: Ask())
        async with served.client(mode, elicitation_callback=User(ALLOW)) as client:
            await client.call_tool("count", {}, progress_callback=tell)
        assert told == [1, 2, 3]


# What only the protocol of 2026 has: a question is an answer, and the answer is another request.


async def first_round(client: Client, name: str = "rm", arguments: Any = None) -> mcp_types.InputRequiredResult:
    result = await client.session.call_tool(name, arguments or {}, allow_input_required=True)
    assert isinstance(result, mcp_types.InputRequiredResult)
    return result


async def test_the_state_is_for_the_same_call_alone(serve: Serve) -> None:
    """Another tool, other arguments and a made-up state are refused, and allow nothing."""
    async with serve() as served:
        body = ask_about(served, "rm", "mv")
        async with served.client(elicitation_callback=User()) as client:
            asked = await first_round(client, "rm", {"path": "a"})
            assert asked.input_requests is not None
            answers = dict.fromkeys(asked.input_requests, ALLOW)
            for name, arguments, state in [
                ("mv", {"path": "a"}, asked.request_state),
                ("rm", {"path": "b"}, asked.request_state),
                ("rm", {}, asked.request_state),
                ("rm", {"path": "a"}, "made up"),
            ]:
                with pytest.raises(MCPError, match="requestState"):
                    await client.session.call_tool(name, arguments, input_responses=answers, request_state=state)
            assert body.runs == []
            await client.session.call_tool(
                "rm", {"path": "a"}, input_responses=answers, request_state=asked.request_state
            )
        assert body.runs == [{"path": "a"}]


async def test_a_state_is_used_up_with_the_result(serve: Serve) -> None:
    """A second yes runs nothing."""
    async with serve() as served:
        body = ask_about(served, "rm")
        async with served.client(elicitation_callback=User()) as client:
            asked = await first_round(client)
            more: Any = {
                "input_responses": dict.fromkeys(asked.input_requests or {}, ALLOW),
                "request_state": asked.request_state,
            }
            await client.session.call_tool("rm", {}, **more)
            with pytest.raises(MCPError, match="requestState"):
                await client.session.call_tool("rm", {}, **more)
        assert (body.runs, codes(served)) == ([{}], [None])


async def test_an_answer_without_a_state_is_for_no_call(serve: Serve) -> None:
    """A call that brings its own yes is asked about as any other."""
    async with serve() as served:
        body = ask_about(served, "rm")
        async with served.client(elicitation_callback=User()) as client:
            result = await client.session.call_tool(
                "rm", {}, input_responses={"approval-1": ALLOW}, allow_input_required=True
            )
            assert isinstance(result, mcp_types.InputRequiredResult)
        assert body.runs == []


async def test_what_answers_no_question_is_passed_over(serve: Serve) -> None:
    """The question is asked again; what is no result of an elicitation is no answer."""
    async with serve() as served:
        body = ask_about(served, "rm")
        async with served.client(elicitation_callback=User()) as client:
            asked = await first_round(client)
            again = await client.session.call_tool(
                "rm",
                {},
                input_responses={"other": ALLOW},
                request_state=asked.request_state,
                allow_input_required=True,
            )
            assert isinstance(again, mcp_types.InputRequiredResult)
            assert again.input_requests == asked.input_requests
            wrong: Any = dict.fromkeys(asked.input_requests or {}, mcp_types.ListRootsResult(roots=[]))
            result = await client.session.call_tool("rm", {}, input_responses=wrong, request_state=asked.request_state)
            assert result.is_error
        assert (codes(served), body.runs) == (["APPROVAL_UNAVAILABLE"], [])


async def test_one_request_waits_for_a_call_at_a_time(serve: Serve) -> None:
    """A second one of the same state is refused; the first has the result."""
    async with serve() as served:
        go = trio.Event()

        async def slow(args: Any, exec: Any) -> Any:
            await go.wait()
            return {}

        served.offer("slow", slow)
        served.ctx.on("tools/pre-execute", lambda exec, next: Ask())
        async with served.client(elicitation_callback=User()) as client:
            asked = await first_round(client, "slow")
            more: Any = {
                "input_responses": dict.fromkeys(asked.input_requests or {}, ALLOW),
                "request_state": asked.request_state,
            }
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_expect_success, client, more)
                await trio.testing.wait_all_tasks_blocked()
                with pytest.raises(MCPError, match="unanswered request"):
                    await client.session.call_tool("slow", {}, **more)
                go.set()


async def _expect_success(client: Client, more: Any) -> None:
    assert not (await client.session.call_tool("slow", {}, **more)).is_error


async def test_a_later_request_of_a_call_can_be_cancelled(serve: Serve) -> None:
    """That aborts the call."""
    async with serve() as served:
        began = trio.Event()

        async def slow(args: Any, exec: Any) -> Any:
            began.set()
            await trio.sleep_forever()

        served.offer("slow", slow)
        served.ctx.on("tools/pre-execute", lambda exec, next: Ask())
        async with served.client(elicitation_callback=User(ALLOW)) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "slow", {})
            await began.wait()
            nursery.cancel_scope.cancel()
        assert codes(served) == ["ABORTED"]


async def test_results_that_nobody_comes_back_for_do_not_pile_up(serve: Serve, autojump_clock: Any) -> None:
    """The oldest are dropped."""
    async with serve(host={"approval_timeout": 5}) as served:
        ask_about(served, "rm")
        over = results(served, 12)
        async with served.client(elicitation_callback=User()) as client:
            asked = [await first_round(client) for _ in range(12)]
            await over.wait()
            with pytest.raises(MCPError, match="requestState"):
                await client.session.call_tool("rm", {}, request_state=asked[0].request_state)
            result = await client.session.call_tool("rm", {}, request_state=asked[-1].request_state)
            assert result.is_error


# Through ``dsh-run mcp`` and the permission gate.


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("allowed", [True, False])
async def test_a_gate_that_asks_reaches_the_clients_user(
    gated_command: tuple[list[str], Path], mode: str, allowed: bool
) -> None:
    """The whole way, over pipes."""
    (program, *arguments), log = gated_command
    user = User(ALLOW if allowed else ElicitResult(action="decline"))
    parameters = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    with trio.fail_after(20):
        async with Client(stdio_client(parameters), mode=mode, elicitation_callback=user) as client:
            result = await client.call_tool("echo", {"text": "hello"})
    assert result.is_error is not allowed
    assert "permission gate" in user.questions[0].message
    (entry,) = [event for event in map(json.loads, log.read_text().splitlines()) if event["event"] == "result"]
    assert entry["code"] == (None if allowed else "APPROVAL_REJECTED")
