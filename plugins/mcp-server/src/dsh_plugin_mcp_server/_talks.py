"""A call that may take several requests of its client, and the questions that stand between them.

Strategy: the state that goes to and fro is a random name for the call and nothing else. Whoever presents it must ask
for the same call again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any, Final

import trio
from attrs import define, field
from dsh_hookspecs import ToolExecutionResult
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ElicitResult

from dsh_plugin_mcp_server._calls import Call
from dsh_plugin_mcp_server._elicitation import FORM

#: So many results wait for a client that does not come back for them; older ones are dropped.
_UNCLAIMED: Final = 8


@define(eq=False)
class _Question:
    """A question to the client's user."""

    message: str
    answered: trio.Event = field(factory=trio.Event)
    answer: object = None


@define(eq=False)
class Talk:
    """One call, and the questions about it that are open."""

    about: str
    state: str = field(factory=lambda: secrets.token_urlsafe(16))
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    call: Call | None = None
    result: ToolExecutionResult | None = None
    rested: bool = False
    attended: bool = False
    _asked: int = 0
    _questions: dict[str, _Question] = field(factory=dict)
    _news: trio.Event = field(factory=trio.Event)

    async def ask(self, message: str) -> ElicitResult:
        """Have the client ask its user, with its next request at the latest."""
        self._asked += 1
        key, question = f"approval-{self._asked}", _Question(message)
        self._questions[key] = question
        self._news.set()
        try:
            await question.answered.wait()
        finally:
            self._questions.pop(key, None)
        if not isinstance(question.answer, ElicitResult):
            raise MCPError(INVALID_PARAMS, "the client answered with something that is no result of an elicitation")
        return question.answer

    def hear(self, answers: Mapping[str, object]) -> None:
        """Take the client's answers; a question is answered once, and what answers none is passed over."""
        for key, answer in answers.items():
            question = self._questions.pop(key, None)
            if question is not None:
                question.answer = answer
                question.answered.set()

    def rest(self) -> None:
        """The call has come to rest."""
        self.rested = True
        self._news.set()

    @property
    def asks(self) -> bool:
        """Whether a question is open."""
        return bool(self._questions)

    async def until_news(self) -> None:
        """Wait until there is a question, or the call has come to rest."""
        while not (self.rested or self.asks):
            self._news = trio.Event()
            await self._news.wait()

    async def until_rest(self) -> None:
        """Wait until the call has come to rest."""
        while not self.rested:
            self._news = trio.Event()
            await self._news.wait()

    def open_questions(self) -> dict[str, Any]:
        """The result that asks."""
        requests = {
            key: {
                "method": "elicitation/create",
                "params": {"mode": "form", "message": question.message, "requestedSchema": FORM},
            }
            for key, question in self._questions.items()
        }
        return {"resultType": "input_required", "inputRequests": requests, "requestState": self.state}


class Talks:
    """The talks of one session, by their states."""

    def __init__(self) -> None:
        self._by_state: dict[str, Talk] = {}

    def begin(self, params: CallToolRequestParams) -> Talk:
        """A talk about a new call."""
        talk = Talk(_subject(params))
        self._by_state[talk.state] = talk
        return talk

    def find(self, params: CallToolRequestParams) -> Talk:
        """The talk that a request goes on with. Its state is for the same name and arguments alone."""
        talk = self._by_state.get(params.request_state or "")
        if talk is None or talk.about != _subject(params):
            raise MCPError(INVALID_PARAMS, "Invalid request: no call of this name and arguments has this requestState")
        if talk.attended:
            raise MCPError(INVALID_PARAMS, "Invalid request: an unanswered request has this requestState")
        return talk

    def end(self, talk: Talk) -> None:
        """The client has been told the result, or does not want to be."""
        self._by_state.pop(talk.state, None)

    def drop_unclaimed(self) -> None:
        """Keep no more results than are likely to be asked for."""
        unclaimed = [talk for talk in self._by_state.values() if talk.rested and not talk.attended]
        for talk in unclaimed[:-_UNCLAIMED]:
            self.end(talk)


def _subject(params: CallToolRequestParams) -> str:
    """Name and arguments as one text that equals no other call's."""
    return json.dumps([params.name, params.arguments or {}], sort_keys=True)
