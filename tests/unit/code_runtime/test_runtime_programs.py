"""What a program can do and what comes of it."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest
import trio
import trio.testing
from runtime_kit import Recorder, is_alive, kind, run, run_one, runtime

from dsh_runtime import AbortController
from dsh_runtime.code_mode.interface import CodeProgram, SubReply


async def test_the_returned_value_comes_back() -> None:
    outcome = await run_one("return {'a': [1, 2.5, None, True, 'ü']}")
    assert (outcome.result, outcome.has_result) == ({"a": [1, 2.5, None, True, "ü"]}, True)
    assert outcome.failure is None


async def test_a_program_that_returns_nothing_has_no_result() -> None:
    outcome = await run_one("x = 1")
    assert (outcome.has_result, outcome.failure) == (False, None)


async def test_what_is_printed_comes_back_in_order_from_both_streams() -> None:
    code = "import sys\nprint('one')\nprint('two', file=sys.stderr)\nsys.stdout.write('three')"
    assert (await run_one(code)).logs == "one\ntwo\nthree"


async def test_what_is_no_character_is_printed_as_an_escape() -> None:
    assert (await run_one(r"print('a\udc80b')")).logs == "a\\udc80b\n"


async def test_a_tool_is_called_with_a_mapping_or_by_keyword() -> None:
    bridge = Recorder()
    outcome = await run_one("return [await tools.echo({'a': 1}), await tools.echo(b=2), await tools.echo()]", bridge)
    assert outcome.result == [{"a": 1}, {"b": 2}, {}]
    assert bridge.entered == [("echo", {"a": 1}), ("echo", {"b": 2}), ("echo", {})]


async def test_a_tool_with_an_odd_name_is_called_by_subscript() -> None:
    bridge = Recorder()
    await run_one("try:\n    await tools['odd-name.x']({})\nexcept ToolCallError: pass", bridge)
    assert bridge.entered == [("odd-name.x", {})]


async def test_a_failed_call_raises_with_message_name_and_code() -> None:
    code = "try:\n    await tools.fail({})\nexcept ToolCallError as e:\n    return [str(e), e.message, e.name, e.code]"
    assert (await run_one(code)).result == ["it does not work", "it does not work", "SomeError", "SOME_CODE"]


async def test_a_failed_call_that_is_not_caught_ends_the_program() -> None:
    outcome = await run_one("await tools.fail({})")
    assert outcome.failure is not None
    assert outcome.failure.message == "ToolCallError: it does not work"


async def test_independent_calls_run_at_the_same_time() -> None:
    gate = trio.Event()
    bridge = Recorder()

    async def meet(arguments: Any) -> int:
        if bridge.under_way == 3:
            gate.set()
        await gate.wait()
        return 1

    bridge._tools["meet"] = meet
    code = "import asyncio\nreturn await asyncio.gather(*(tools.meet({}) for _ in range(3)))"
    assert (await run_one(code, bridge)).result == [1, 1, 1]


async def test_calls_enter_in_the_order_in_which_they_were_made() -> None:
    bridge = Recorder()
    code = "import asyncio\nawait asyncio.gather(*(tools.echo({'n': n}) for n in range(300)))"
    assert kind(await run_one(code, bridge)) == "ended"
    assert [arguments["n"] for _, arguments in bridge.entered] == list(range(300))
    assert bridge.most <= 100


async def test_no_more_than_a_hundred_calls_are_under_way_at_once() -> None:
    bridge, gate = Recorder(), trio.Event()

    async def hold(arguments: Any) -> None:
        if bridge.under_way == 100:
            await trio.testing.wait_all_tasks_blocked()
            gate.set()
        await gate.wait()

    bridge._tools["hold"] = hold
    code = "import asyncio\nawait asyncio.gather(*(tools.hold({}) for _ in range(300)))"
    assert kind(await run_one(code, bridge)) == "ended"
    assert (bridge.most, bridge.finished) == (100, 300)


async def test_a_program_is_dead_before_its_calls_have_come_to_rest() -> None:
    bridge, alive = Recorder(), []

    async def slow(pid: Any) -> None:
        await bridge.ending.wait()
        await trio.sleep(0.05)
        alive.append(is_alive(pid))

    bridge._tools["slow"] = slow
    code = "import asyncio, os\nasyncio.create_task(tools.slow(os.getpid()))\nawait asyncio.sleep(0)\nwhile True: pass"
    assert kind(await run_one(code, bridge, wall_time=0.3)) == "timeout"
    assert alive == [False]


async def test_a_call_that_the_program_gives_up_on_is_cancelled() -> None:
    bridge = Recorder()
    code = """
import asyncio
try:
    async with asyncio.timeout(0.05):
        await tools.forever({})
except TimeoutError:
    pass
return await tools.echo({"after": 1})
"""
    assert (await run_one(code, bridge)).result == {"after": 1}
    assert bridge.cancelled == 1


async def test_calls_under_way_at_the_end_come_to_rest_before_the_result() -> None:
    bridge = Recorder()
    code = "import asyncio\nt = asyncio.create_task(tools.forever({}))\nawait tools.echo({})\nreturn 1"
    outcome = await run_one(code, bridge)
    assert outcome.result == 1
    assert (len(bridge.entered), bridge.finished) == (2, 2)


async def test_whatever_else_a_program_does_goes_on_beside_calls_that_come_back_at_once() -> None:
    code = """
import asyncio, os, threading
seen = set()
def note(name): seen.add(name)
async def task():
    await asyncio.sleep(0)
    note("task")
loop = asyncio.get_running_loop()
reading, writing = os.pipe()
os.write(writing, b"x")
loop.add_reader(reading, note, "descriptor")
threading.Thread(target=loop.call_soon_threadsafe, args=(note, "thread")).start()
loop.create_task(task())
loop.call_later(0.01, note, "timer")
for _ in range(100_000):
    await tools.echo({})
    if len(seen) == 4: break
try:
    async with asyncio.timeout(0.05):
        while True: await tools.echo({})
except TimeoutError:
    note("timeout")
return sorted(seen)
"""
    expected = ["descriptor", "task", "thread", "timeout", "timer"]
    assert (await run_one(code, sub_calls=1_000_000)).result == expected


async def test_a_call_finds_nothing_of_the_context_of_another() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    async def count(arguments: Any) -> int:
        before = variable.get()
        variable.set(before + 1)
        await trio.lowlevel.checkpoint()
        return before

    code = """
import asyncio
one_by_one = [await tools.count({}) for _ in range(20)]
return one_by_one + await asyncio.gather(*(tools.count({}) for _ in range(200)))
"""
    assert (await run_one(code, Recorder(count=count))).result == [0] * 220


async def test_names_are_seen_by_functions_classes_and_comprehensions() -> None:
    code = """
import math
factor = 3
def scale(x):
    return x * factor
class Box:
    size = [scale(n) for n in range(3)]
return [scale(2), Box.size, [scale(i) for i in [1]], math.floor(2.5), __name__]
"""
    assert (await run_one(code)).result == [6, [0, 3, 6], [3], 2, "__main__"]


async def test_lines_of_a_multi_line_string_are_kept_as_they_stand() -> None:
    assert (await run_one('return """a\n  b\n"""')).result == "a\n  b\n"


async def test_a_future_import_may_stand_first() -> None:
    assert (await run_one("from __future__ import annotations\nx: Undefined = 1\nreturn x")).result == 1


async def test_await_is_possible_in_every_form_at_the_top() -> None:
    code = """
class Manager:
    async def __aenter__(self): return 1
    async def __aexit__(self, *a): pass
async def numbers():
    yield 1
async with Manager() as one: pass
async for n in numbers(): pass
return [one, n, [m async for m in numbers()]]
"""
    assert (await run_one(code)).result == [1, 1, [1]]


async def test_modules_of_the_library_can_be_imported() -> None:
    code = "import sqlite3, wave, zoneinfo, statistics, concurrent.futures\nreturn statistics.mean([1, 3])"
    assert (await run_one(code)).result == 2


async def test_each_program_has_random_numbers_of_its_own() -> None:
    async with runtime() as service:
        numbers = {(await run(service, "import random\nreturn random.random()")).result for _ in range(4)}
    assert len(numbers) == 4


async def test_nothing_of_one_program_is_there_for_the_next() -> None:
    async with runtime() as service:
        await run(service, "import builtins, json\nbuiltins.left = json.left = 1")
        code = "import builtins, json\nreturn hasattr(builtins, 'left') or hasattr(json, 'left')"
        assert (await run(service, code)).result is False


async def test_a_traceback_has_the_programs_own_lines_with_their_numbers() -> None:
    code = "import json\n\ndef parse(text):\n    return json.loads(text)\n\nparse('{')"
    failure = (await run_one(code)).failure
    assert failure is not None
    assert failure.kind == "exception"
    assert "File \"<program>\", line 6, in program\n    parse('{')" in failure.traceback
    assert 'File "<program>", line 4, in parse' in failure.traceback
    assert "json/decoder" not in failure.traceback
    assert failure.message.startswith("json.decoder.JSONDecodeError: Expecting property name")


async def test_a_traceback_shows_causes_and_members_of_groups() -> None:
    code = """
import asyncio
async def bad(n):
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise ValueError(n) from error
async with asyncio.TaskGroup() as group:
    group.create_task(bad(7))
"""
    failure = (await run_one(code)).failure
    assert failure is not None
    assert "ExceptionGroup" in failure.message
    for text in ("ZeroDivisionError", "direct cause", "ValueError: 7", "line 7, in bad", "Member 1"):
        assert text in failure.traceback


async def test_a_syntax_error_names_its_line() -> None:
    failure = (await run_one("x = 1\ny = = 2")).failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("exception", "SyntaxError: invalid syntax (line 2)")
    assert "y = = 2" in failure.traceback


async def test_what_was_printed_before_a_failure_is_kept() -> None:
    outcome = await run_one("print('so far')\n1 / 0")
    assert (outcome.logs, kind(outcome)) == ("so far\n", "exception")


async def test_ten_megabytes_cross_in_both_directions() -> None:
    code = "text = 'x' * 10_000_000\nback = await tools.echo({'t': text})\nreturn len(back['t'])"
    assert (await run_one(code)).result == 10_000_000


async def test_a_result_that_is_too_large_is_an_error_of_the_call() -> None:
    async def large(arguments: Any) -> str:
        return "x" * 10_000

    code = "try:\n    await tools.large({})\nexcept ToolCallError as e:\n    return e.code"
    assert (await run_one(code, Recorder(large=large), frame_bytes=5_000)).result == "VALUE_TOO_LARGE"


async def test_an_error_text_of_a_tool_may_hold_anything() -> None:
    async def odd(arguments: Any) -> SubReply:
        from dsh_runtime.code_mode.interface import SubError

        return SubReply(error=SubError("\ud800 \x00 \u2028", "Odd"))

    code = "try:\n    await tools.odd({})\nexcept ToolCallError as e:\n    return e.message"
    assert (await run_one(code, Recorder(odd=odd))).result == "? \x00 \u2028"


async def test_an_abort_ends_the_run_with_what_was_printed() -> None:
    controller = AbortController()
    bridge = Recorder()
    async with runtime() as service, trio.open_nursery() as nursery:

        @nursery.start_soon
        async def abort() -> None:
            await bridge.started.wait()
            controller.abort("enough")

        outcome = await run(service, "print('so far')\nawait tools.forever({})", bridge, controller.signal)
    assert (outcome.logs, kind(outcome)) == ("so far\n", "aborted")


async def test_an_abort_from_another_thread_ends_the_run() -> None:
    controller = AbortController()
    bridge = Recorder()
    async with runtime() as service, trio.open_nursery() as nursery:

        @nursery.start_soon
        async def abort() -> None:
            await bridge.started.wait()
            await trio.to_thread.run_sync(controller.abort)

        assert kind(await run(service, "await tools.forever({})", bridge, controller.signal)) == "aborted"


async def test_a_run_that_is_aborted_beforehand_starts_nothing() -> None:
    controller = AbortController()
    controller.abort()
    async with runtime() as service:
        outcome = await run(service, "await tools.echo({})", bridge := Recorder(), controller.signal)
    assert (kind(outcome), bridge.entered) == ("aborted", [])


async def test_a_cancelled_run_leaves_nothing_and_stays_cancelled() -> None:
    bridge = Recorder()
    async with runtime() as service:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                @nursery.start_soon
                async def cancel() -> None:
                    await bridge.started.wait()
                    scope.cancel()

                await service.run(CodeProgram("await tools.forever({})", AbortController().signal, bridge))
        assert scope.cancelled_caught
        assert (bridge.closed, bridge.under_way) == (1, 0)


async def test_no_more_programs_run_at_once_than_shall() -> None:
    most = 0
    running = 0
    gate = trio.Event()

    async def visit(arguments: Any) -> int:
        nonlocal most, running
        running += 1
        most = max(most, running)
        if running == 2:
            gate.set()
        await gate.wait()
        running -= 1
        return 0

    async with runtime(runs=2) as service, trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(run, service, "await tools.visit({})", Recorder(visit=visit))
    assert most == 2


async def test_an_abort_ends_the_wait_for_a_turn() -> None:
    controller, bridge, waiting = AbortController(), Recorder(), Recorder()
    async with runtime(runs=1) as service, trio.open_nursery() as nursery:
        nursery.start_soon(run, service, "await tools.forever({})", bridge)
        await bridge.started.wait()

        @nursery.start_soon
        async def abort() -> None:
            controller.abort()

        assert kind(await run(service, "return 1", waiting, controller.signal)) == "aborted"
        bridge.ending.set()


async def test_the_time_that_people_take_does_not_count() -> None:
    asked = 0.0
    bridge = Recorder()

    async def ask(arguments: Any) -> str:
        nonlocal asked
        await trio.sleep(0.6)
        asked = 0.6
        return "yes"

    bridge._tools["ask"] = ask

    def people_time() -> float:
        return asked if asked else 10.0 * bridge.under_way

    async with runtime(wall_time=0.3) as service:
        program = CodeProgram("return await tools.ask({})", AbortController().signal, bridge, people_time)
        assert (await service.run(program)).result == "yes"


@pytest.mark.parametrize("code", ["", "\n\n", "# nothing", "'a docstring'", "pass"])
async def test_a_program_of_nothing_ends_well(code: str) -> None:
    assert kind(await run_one(code)) == "ended"
