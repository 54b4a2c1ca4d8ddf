"""What the host takes from a program's process, without any process: bytes in, messages or a violation out."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from dsh_hookspecs import JsonValueError
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.code_mode.interface import SubError, SubReply
from dsh_runtime.code_mode.runtime.child.values import NotJsonError, encode
from dsh_runtime.code_mode.runtime.child.wire import HEADER, framed
from dsh_runtime.code_mode.runtime.frames import (
    Dialogue,
    Failed,
    GivenUp,
    Inbox,
    Ready,
    Returned,
    SubCall,
    Unfit,
    Violation,
    reply_frame,
)
from dsh_runtime.code_mode.runtime.parsed import freeze_parsed
from dsh_runtime.values import snapshot_json

FRAME = 10_000

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars | st.binary(max_size=3) | st.just({1}),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=12,
)


def hear(*messages: Any, sub_calls: int = 10) -> list[Any]:
    """What a dialogue with a greeted process makes of messages."""
    dialogue = Dialogue(FRAME, sub_calls, greeted=True)
    return [dialogue.hear(m if isinstance(m, bytes) else json.dumps(m).encode()) for m in messages]


def test_every_message_of_an_honest_process_is_heard() -> None:
    heard = hear(["call", 1, "t", {"a": 1}], ["cancel", 1], ["return", None], ["fail", "memory", "m", "t"])
    assert [type(message) for message in heard] == [SubCall, GivenUp, Returned, Failed]
    assert Dialogue(FRAME, 0).hear(b'["ready",{"user":1}]') == Ready({"user": 1})
    assert Dialogue(FRAME, 0).hear(b'["unfit","r"]') == Unfit("r")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{}",
        b"[]",
        b'["call"]',
        b'["call",1,"t"]',
        b'["call",1,"t",{},5]',
        b'["call",1,2,{}]',
        b'["call",0,"t",{}]',
        b'["call",2,"t",{}]',
        b'["call",-1,"t",{}]',
        b'["call",true,"t",{}]',
        b'["call",1.0,"t",{}]',
        b'["call","1","t",{}]',
        b'["call",null,"t",{}]',
        b'["call",1,"t",NaN]',
        b'["call",1,"t",Infinity]',
        b'["call",1,"t",1e999]',
        b'["call",1,"t",{"a":1e999}]',
        b'["call",1,"t",[[-1e999]]]',
        b'["call",1,"t","\\ud800"]',
        b'["call",1,"t",{"\\udfff":1}]',
        b'["call",1,"\\ud800",{}]',
        b'["call",1,"' + b"x" * 2_000 + b'",{}]',
        b'["call",1,"t",' + b"9" * 5_000 + b"]",
        b'["call",1,"t",' + b"[" * 600 + b"]" * 600 + b"]",
        b'["call",1,"t",' + b"[" * 4_000 + b"]" * 4_000 + b"]",
        b'["call",1,"t",{}] ',
        b'["call",1,"t",{}]["call",2,"t",{}]',
        b'["call",1,"t","\xff"]',
        b'\xef\xbb\xbf["return",1]',
        b'["cancel",1]',
        b'["cancel",0]',
        b'["cancel",true]',
        b'["ready",{}]',
        b'["unfit","x"]',
        b'["run","x"]',
        b'["value",1,1]',
        b'["return"]',
        b'["return",1,2]',
        b'["fail","timeout","m","t"]',
        b'["fail","aborted","m","t"]',
        b'["fail","exception",1,"t"]',
        b'["fail","exception","m",null]',
        b'["fail",["exception"],"m","t"]',
        b'[["call"],1,"t",{}]',
    ],
)
def test_what_no_honest_process_sends_is_a_violation(body: bytes) -> None:
    with pytest.raises(Violation):
        hear(body)


def test_ids_count_up_and_no_call_is_given_up_twice() -> None:
    for messages in (
        [["call", 1, "t", 0], ["call", 1, "t", 0]],
        [["call", 1, "t", 0], ["call", 3, "t", 0]],
        [["call", 1, "t", 0], ["cancel", 2]],
        [["call", 1, "t", 0], ["cancel", 1], ["cancel", 1]],
    ):
        with pytest.raises(Violation, match="forged id"):
            hear(*messages)


def test_more_calls_than_may_be_made_are_a_violation() -> None:
    with pytest.raises(Violation, match="more than 2 sub-calls"):
        hear(*(["call", number, "t", 0] for number in (1, 2, 3)), sub_calls=2)


def test_before_it_is_ready_a_process_says_nothing_else() -> None:
    for body in (b'["call",1,"t",{}]', b'["return",1]', b'["fail","memory","m","t"]', b'["cancel",1]'):
        with pytest.raises(Violation):
            Dialogue(FRAME, 10).hear(body)


def test_values_that_take_far_more_memory_than_text_are_a_violation() -> None:
    with pytest.raises(Violation, match="too many"):
        hear(b'["return",[' + b"[]," * 3_000 + b"1]]")


def test_a_frame_that_is_announced_too_large_is_refused_before_it_comes() -> None:
    for size in (FRAME + 1, 2**32 - 1):
        inbox = Inbox(FRAME)
        inbox.feed(HEADER.pack(size))
        with pytest.raises(Violation, match="bytes"):
            inbox.next()


@given(st.lists(st.binary(max_size=50), max_size=8), st.integers(1, 7))
def test_frames_come_out_as_they_went_in_however_they_are_cut(bodies: list[bytes], step: int) -> None:
    data = b"".join(map(framed, bodies))
    inbox, found = Inbox(FRAME), []
    for start in range(0, len(data), step):
        inbox.feed(data[start : start + step])
        while (body := inbox.next()) is not None:
            found.append(body)
    assert found == bodies


@given(st.binary(max_size=300))
def test_any_bytes_are_messages_or_a_violation(data: bytes) -> None:
    inbox, dialogue = Inbox(FRAME), Dialogue(FRAME, 10, greeted=True)
    inbox.feed(data)
    try:
        while (body := inbox.next()) is not None:
            dialogue.hear(body)
    except Violation:
        pass


@given(st.sampled_from(["call", "cancel", "return", "fail", "ready", "unfit", "x"]), st.lists(values, max_size=4))
def test_any_json_is_a_message_with_checked_parts_or_a_violation(tag: str, parts: list[Any]) -> None:
    try:
        body = json.dumps([tag, *parts], default=repr).encode()
        (message,) = hear(body)
    except (Violation, TypeError):
        return
    match message:
        case SubCall(number, name, arguments):
            assert (number, type(name), snapshot_json(arguments)) == (1, str, arguments)
        case Returned(value):
            assert snapshot_json(value) == value
        case Failed(kind, text, trace):
            assert kind in ("exception", "memory")
            assert (type(text), type(trace)) == (str, str)
        case _:
            raise AssertionError(message)


numbers = st.integers() | st.floats() | st.integers(min_value=-(10**700), max_value=10**700)
trees = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=3) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=30,
)


@given(trees, st.integers(min_value=1, max_value=5), st.booleans())
def test_a_parsed_value_is_frozen_as_any_other_is(tree: Any, depth: int, escaped: bool) -> None:
    """The quick way for what was just parsed takes, gives and refuses what ``snapshot_json`` does."""
    body = json.dumps(tree, ensure_ascii=escaped).encode("utf-8", "surrogatepass" if escaped else "replace")
    value = json.loads(body)
    try:
        expected = snapshot_json(value, max_depth=depth)
    except JsonValueError as refused:
        with pytest.raises(JsonValueError, match=re.escape(str(refused))):
            freeze_parsed(value, body, depth)
        return
    found = freeze_parsed(value, body, depth)
    assert (found, shape(found)) == (expected, shape(expected))


def shape(value: Any) -> Any:
    """The types of a value and all that is in it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [type(value), *map(shape, inner)]


@given(values)
def test_the_program_side_sends_exactly_what_the_host_takes(value: Any) -> None:
    try:
        expected = snapshot_json(value)
    except JsonValueError:
        expected = None
        with pytest.raises(NotJsonError):
            encode(["return"], value, "it", FRAME)
        return
    assert hear(encode(["return"], value, "it", FRAME)) == [Returned(expected)]


@given(values)
def test_a_reply_says_what_the_tool_said(value: Any) -> None:
    try:
        value = snapshot_json(value)
    except JsonValueError:
        return
    frame = reply_frame(7, SubReply(value), 10**6)
    assert json.loads(frame[HEADER.size :]) == ["value", 7, value]


def test_a_reply_that_is_too_large_or_too_deep_is_an_error() -> None:
    deep: Any = None
    for _ in range(5_000):
        deep = [deep]
    for value in ("x" * 10_000, deep):
        message = json.loads(reply_frame(1, SubReply(value), 5_000)[HEADER.size :])
        assert (message[0], message[4]) == ("error", "VALUE_TOO_LARGE")


def test_an_error_reply_carries_message_name_and_code() -> None:
    frame = reply_frame(1, SubReply(error=SubError("m", "n", "c")), 5_000)
    assert json.loads(frame[HEADER.size :]) == ["error", 1, "m", "n", "c"]
