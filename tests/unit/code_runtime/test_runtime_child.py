"""The program's half by itself, with a host that answers every call at once: what else goes on gets its turn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import dsh_runtime.code_mode.runtime as package

HOST = """
import json, os, socket, sys
sys.path.insert(0, sys.argv[1])
from child.channel import Channel
from child.program import Runner
from child.template import _REHEARSED
from child.wire import framed

own, host = socket.socketpair()
class AtOnce(Channel):
    def send(self, body):
        super().send(body)
        host.sendall(framed(json.dumps(["value", json.loads(body)[1], None]).encode()))

host.sendall(framed(json.dumps(["run", sys.stdin.read()]).encode()))
Runner(AtOnce(own), {**_REHEARSED, "sub_calls": 500}, lambda: None).run()
own.close()
data = host.makefile("rb").read()
while data:
    stop = 4 + int.from_bytes(data[:4], "big")
    body, data = data[4:stop], data[stop:]
print(body.decode())
"""


def outcome_of(program: str) -> Any:
    """The last message of a program."""
    command = [sys.executable, "-I", "-S", "-c", HOST, str(Path(package.__file__).parent)]
    ended = subprocess.run(command, input=program, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(ended.stdout)


def test_a_task_that_is_ready_goes_on_at_the_next_call() -> None:
    code = """
import asyncio
seen = []
async def task(): seen.append("task")
t = asyncio.create_task(task())
await tools.hello({})
return seen
"""
    assert outcome_of(code) == ["return", ["task"]]


def test_a_timer_is_heard_however_many_calls_are_made() -> None:
    code = """
import asyncio
try:
    async with asyncio.timeout(0.002):
        while True: await tools.hello({})
except TimeoutError:
    return "in time"
"""
    assert outcome_of(code) == ["return", "in time"]


def test_a_descriptor_is_looked_at_every_few_calls() -> None:
    code = """
import asyncio, os
seen = []
reading, writing = os.pipe()
asyncio.get_running_loop().add_reader(reading, seen.append, "descriptor")
await tools.hello({})
os.write(writing, b"x")
for _ in range(40): await tools.hello({})
return seen[:1]
"""
    assert outcome_of(code) == ["return", ["descriptor"]]


def test_a_call_that_nothing_goes_on_beside_takes_no_round_of_the_loop() -> None:
    code = """
import asyncio
loop = asyncio.get_running_loop()
rounds, once = 0, loop._run_once
def count():
    nonlocal rounds
    rounds += 1
    once()
await tools.hello({})
loop._run_once = count
for _ in range(30): await tools.hello({})
return rounds
"""
    assert outcome_of(code)[1] < 10
