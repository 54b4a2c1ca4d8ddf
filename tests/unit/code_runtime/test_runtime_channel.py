"""Programs that write to the channel themselves: descriptor 3 of their process."""

from __future__ import annotations

import random

import trio
from runtime_kit import Recorder, kind, run, run_one, runtime

WRITE = """
import json, os, struct, time
def send(body):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    data = struct.pack(">I", len(body)) + body
    while data:
        try: data = data[os.write(3, data):]
        except BlockingIOError: time.sleep(0.001)
"""
STAY = "\nimport time\ntime.sleep(60)"

FORGED = [
    "os.write(3, b'\\xff\\xff\\xff\\xff')",
    "os.write(3, b'\\x7f\\xff\\xff\\xff' + b'x' * 1000)",
    "os.write(3, b'rubbish, rubbish and more rubbish')",
    "send(b'')",
    "send(b'[')",
    "send(b'\\xff\\xfe')",
    "send(b'[' * 100_000)",
    "send(['ready', {}])",
    "send(['unfit', 'x'])",
    "send(['run', 'return 1'])",
    "send(['call', 2, 'echo', {}])",
    "send(['call', 0, 'echo', {}])",
    "send(['call', True, 'echo', {}])",
    "send(['cancel', 1])",
    "send(['call', 1, 'echo', float('nan')])",
    'send(b\'["call",1,"echo","\\\\ud800"]\')',
    "send(['fail', 'timeout', 'm', 't'])",
    "send(['call', 1, 'x' * 2000, {}])",
    "send(b'[\"call\",1,\"echo\",[' + b'[],' * 300_000 + b'1]]')",
]


async def test_forged_and_huge_frames_end_the_run_and_reach_no_tool() -> None:
    bridge = Recorder()
    async with runtime(frame_bytes=1_000_000) as service:
        for code in FORGED:
            bridge.closed = 0
            outcome = await run(service, f"print('so far')\n{WRITE}\n{code}{STAY}", bridge)
            assert (code, kind(outcome), outcome.logs) == (code, "crashed", "so far\n")
            assert outcome.failure is not None
            assert "broke the rules of its channel" in outcome.failure.message
    assert bridge.entered == []


async def test_the_id_of_an_earlier_call_cannot_be_used_again() -> None:
    bridge = Recorder()
    code = f"{WRITE}\nawait tools.echo({{'n': 1}})\nsend(['call', 1, 'echo', {{'n': 2}}]){STAY}"
    assert kind(await run_one(code, bridge)) == "crashed"
    assert bridge.entered == [("echo", {"n": 1})]


async def test_a_call_that_is_written_by_hand_is_a_call_like_any_other() -> None:
    bridge = Recorder()
    calls = "send(['call', 1, 'echo', {'n': 1}])\nsend(['call', 2, 'nothing', {}])\nsend(['return', 'r'])"
    code = f"{WRITE}\n{calls}{STAY}"
    outcome = await run_one(code, bridge)
    assert (outcome.result, bridge.entered) == ("r", [("echo", {"n": 1}), ("nothing", {})])


async def test_more_calls_than_may_be_made_cannot_be_forged() -> None:
    bridge = Recorder()
    code = f"{WRITE}\nfor n in range(1, 9):\n    send(['call', n, 'echo', {{}}]){STAY}"
    assert kind(await run_one(code, bridge, sub_calls=5)) == "crashed"
    assert len(bridge.entered) <= 5


async def test_nothing_counts_that_comes_after_the_end() -> None:
    bridge = Recorder()
    code = f"""{WRITE}
import threading
def late():
    for n in range(1, 1000):
        send(['call', n, 'echo', {{}}])
end = json.dumps(['return', 1]).encode()
call = json.dumps(['call', 1, 'echo', {{}}]).encode()
os.write(3, struct.pack(">I", len(end)) + end + struct.pack(">I", len(call)) + call)
threading.Thread(target=late).start()
{STAY}"""
    outcome = await run_one(code, bridge)
    assert (outcome.result, bridge.entered) == (1, [])


async def test_half_a_frame_ends_with_the_process_or_with_time() -> None:
    half = "os.write(3, b'\\0\\0\\1\\0[\"call\",1')"
    async with runtime(wall_time=0.3) as service:
        assert kind(await run(service, f"{WRITE}\n{half}\nos._exit(0)")) == "crashed"
        assert kind(await run(service, f"{WRITE}\n{half}{STAY}")) == "timeout"


async def test_a_flood_of_messages_keeps_nobody_else_waiting() -> None:
    flood = f"{WRITE}\nfor n in range(1, 100_000): send(['call', n, 'echo', {{}}])"
    async with runtime(sub_calls=100_000, wall_time=1.0) as service:
        await service.settle()
        bridge = Recorder()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, service, flood, bridge)
            await bridge.started.wait()
            waits = []
            for _ in range(20):
                began = trio.current_time()
                await trio.sleep(0.001)
                waits.append(trio.current_time() - began)
        assert sorted(waits)[10] < 0.2


async def test_a_program_that_does_not_read_its_answers_is_not_read_any_further() -> None:
    bridge = Recorder()
    code = f"""{WRITE}
for n in range(1, 2000):
    send(['call', n, 'echo', 'x' * 100_000])
    print(n)
"""
    outcome = await run_one(code, bridge, sub_calls=2_000, wall_time=1.5, frame_bytes=200_000)
    assert kind(outcome) in ("timeout", "crashed")
    assert len(bridge.entered) < 500
    assert len(outcome.logs.split()) < 500


async def test_a_program_that_sends_more_than_is_taken_still_gets_its_answers() -> None:
    bridge = Recorder()
    code = """
import asyncio
answers = await asyncio.gather(*(tools.echo("x" * 300_000) for _ in range(200)))
return [len(answers), len(set(map(len, answers)))]
"""
    assert (await run_one(code, bridge, frame_bytes=400_000, memory=512 * 1024 * 1024)).result == [200, 1]


async def test_a_program_ends_though_neither_its_calls_nor_their_answers_have_all_crossed() -> None:
    code = """
import asyncio
for _ in range(200):
    asyncio.create_task(tools.echo("x" * 300_000))
await asyncio.sleep(0)
return "done"
"""
    assert (await run_one(code, frame_bytes=400_000, memory=512 * 1024 * 1024)).result == "done"


async def test_random_bytes_in_the_channel_end_the_run_in_an_orderly_way() -> None:
    """Fuzzing: whatever stands in the channel, the run ends, no call is heard that was not made, the host goes on."""
    chance = random.Random(7)
    parts = [
        "['call', n, 'echo', {}]",
        "['call', n, 'echo', {'a': [n]}]",
        "['cancel', n]",
        "['return', n]",
        "['ready', n]",
    ]
    async with runtime(wall_time=5.0) as service:
        for _ in range(60):
            lines = [WRITE]
            for number in range(1, chance.randint(2, 8)):
                if chance.random() < 0.6:
                    part = chance.choice(parts).replace("n", str(chance.choice([number, number, number, 0, 99])))
                    lines.append(f"body = bytearray(json.dumps({part}).encode())" if "null" not in part else "")
                    if chance.random() < 0.5:
                        lines.append(f"body[{chance.randrange(6)}] ^= {1 << chance.randrange(8)}")
                    lines.append("send(bytes(body))")
                else:
                    lines.append(f"os.write(3, {bytes(chance.randbytes(chance.randint(1, 40)))!r})")
            lines.append(chance.choice(["os._exit(0)", "os.close(3)\nimport time\ntime.sleep(9)", "return 1"]))
            bridge = Recorder()
            outcome = await run(service, "\n".join(lines), bridge)
            assert kind(outcome) in ("ended", "crashed", "exception"), lines
            assert all(name == "echo" for name, _ in bridge.entered), lines
        assert (await run(service, "return await tools.echo({'still': 1})")).result == {"still": 1}
