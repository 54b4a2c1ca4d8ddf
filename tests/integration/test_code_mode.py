"""Code Mode as it is run: a config, installed policies, programs in processes of their own, the record."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sysconfig
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host
from dsh_runtime.services.sessions.reading import Reader

DSH_RUN = os.path.join(sysconfig.get_path("scripts"), "dsh-run")
HOST = '[host]\npresentation = "both"\nlog.path = "log.db"\ncode.spares = 0\n'
GATE = """
[[plugin]]
id = "gate"
use = "permission-gate"
[plugin.config]
default = "allow"
[[plugin.config.rules]]
action = "deny"
tools = ["work"]
arguments = { why = ["spite"] }
reason = "not so"
[[plugin.config.rules]]
action = "ask"
tools = ["work"]
arguments = { why = ["habit"] }
reason = "is it needed"
"""
CAUGHT = """
async def code_of(call):
    try:
        return await call
    except ToolCallError as error:
        return error.code
"""


class Worker:
    """A plugin whose tool notes what it does."""

    name = "worker"
    inject = ("tools",)

    def __init__(self, body: Callable[[Any, Any], Any] | None = None) -> None:
        self.ran: list[int] = []
        self._body = body

    async def work(self, args: Any, exec: Any) -> Any:
        self.ran.append(args["n"])
        if self._body is not None:
            return await self._body(args, exec)
        return args["n"]

    def apply(self, ctx: Any) -> None:
        self.ctx = ctx
        number: Any = {"type": "integer", "required": True}
        tool = define_tool(
            name="work",
            description="Work.",
            parameters={"n": number, "why": {"type": "string"}},
            output={"type": "json"},
            execute=self.work,
            is_concurrency_safe=lambda args: True,
        )
        ctx.tools.register(tool)


class Running:
    """A host, and programs on it."""

    def __init__(self, host: Any, folder: Path) -> None:
        self.ctx = host.ctx
        self.log = folder / "log.db"

    async def run(self, code: str, *, call_id: str = "run", agent: Any = None, signal: Any = None) -> Any:
        arguments = {"code": CAUGHT + textwrap.dedent(code), "description": "a test"}
        call = ToolExecutionInput(call_id, "run_code", arguments, signal or AbortController().signal, agent=agent)
        with trio.fail_after(30):
            return await self.ctx.tools.execute(call)

    async def value(self, code: str, **more: Any) -> Any:
        result = await self.run(code, **more)
        assert not result.is_error, result
        return result.value.get("result")


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    """Open the host that a config in the test's folder describes."""

    @asynccontextmanager
    async def open_it(config: str, *plugins: Any) -> AsyncIterator[Running]:
        (tmp_path / "dsh.toml").write_text(HOST + config)
        before = children_of(os.getpid())
        async with open_host(tmp_path / "dsh.toml", plugins=plugins) as host:
            yield Running(host, tmp_path)
        assert children_of(os.getpid()) <= before

    return open_it


def children_of(pid: int) -> set[str]:
    """The processes that a process has started and not seen off."""
    return {child for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()}


async def test_an_installed_policy_decides_about_each_sub_call(opened: Any) -> None:
    """What it denies never starts; what it allows runs; each is on record with who decided."""
    worker = Worker()
    async with opened(GATE, worker) as running:
        code = "return [await code_of(tools.work(n=n, why=w)) for n, w in ((1, ''), (13, 'spite'), (2, ''))]"
        assert await running.value(code) == [1, "DENIED", 2]
        assert worker.ran == [1, 2]
        with Reader(running.log) as reader:
            denied = reader.call("run:code:2")
            tree = reader.nested(reader.call("run"))
    result = denied.events[-1].payload
    assert (result["code"], result["error"]["plugin"]) == ("DENIED", "gate")
    assert [step["answer"] for step in result["story"] if step["stage"] == "tools/pre-execute"] == ["deny"]
    assert [record.info.call_id for record in tree] == ["run:code:1", "run:code:2", "run:code:3"]


@pytest.mark.parametrize(
    ("answer", "expected", "ran"), [("allowed-once", 7, [7]), ("rejected", "APPROVAL_REJECTED", [])]
)
async def test_a_person_is_asked_about_a_sub_call(opened: Any, answer: str, expected: Any, ran: list[int]) -> None:
    """With the arguments of that very call; the answer is for it alone."""
    worker = Worker()
    asked: list[Any] = []

    def channel(request: Any, next: Any) -> str:
        asked.append((request.exec.name, request.exec.arguments, "is it needed" in request.reason))
        return answer

    async with opened(GATE, worker) as running:
        running.ctx.on("approval/request", channel)
        agent = running.ctx.scope()
        assert await running.value("return await code_of(tools.work(n=7, why='habit'))", agent=agent.key) == expected
        assert await running.value("return await code_of(tools.work(n=1))", agent=agent.key) == 1
    assert asked == [("work", {"n": 7, "why": "habit"}, True)]
    assert worker.ran == [*ran, 1]


async def test_a_deadline_counts_for_a_sub_call_and_the_program_goes_on(opened: Any) -> None:
    """The timeout plugin does not know that it is inside a program."""

    async def slow(args: Any, exec: Any) -> int:
        await trio.sleep(args["n"])
        return 0

    config = '[[plugin]]\nid = "timeout"\nuse = "timeout"\nconfig.overrides.work = 0.05\n'
    async with opened(config, Worker(slow)) as running:
        assert await running.value("return [await code_of(tools.work(n=n)) for n in (0, 60)]") == [0, "TOOL_TIMEOUT"]


async def test_a_deadline_of_run_code_ends_the_program_but_not_while_a_person_thinks(opened: Any) -> None:
    """What is left of the program is gone before the result is there."""

    async def channel(request: Any, next: Any) -> str:
        await trio.sleep(1.7)
        return "allowed-once"

    config = GATE + '[[plugin]]\nid = "timeout"\nuse = "timeout"\nconfig.overrides.run_code = 1.5\n'
    worker = Worker()
    async with opened(config, worker) as running:
        running.ctx.on("approval/request", channel)
        agent = running.ctx.scope()
        await running.run("pass")  # the first one waits for its interpreter
        assert await running.value("return await tools.work(n=7, why='habit')", agent=agent.key) == 7
        result = await running.run("while True: pass", agent=agent.key)
        assert result.error.info.code == "TOOL_TIMEOUT"


async def test_the_time_of_people_is_none_of_the_wall_time(opened: Any) -> None:
    """A program that waits for somebody may outlive its limit."""

    async def channel(request: Any, next: Any) -> str:
        await trio.sleep(1.7)
        return "allowed-once"

    async with opened("code.wall_time = 1.5\n" + GATE, Worker()) as running:
        running.ctx.on("approval/request", channel)
        agent = running.ctx.scope()
        assert await running.value("return await tools.work(n=7, why='habit')", agent=agent.key) == 7
        result = await running.run("import time\ntime.sleep(60)", agent=agent.key)
        assert "(timeout)" in result.error.message


async def test_the_record_is_masked_and_bounded_by_the_plugins_that_do_so(opened: Any, tmp_path: Path) -> None:
    """redact for whatever is written, spill for the copy that the log keeps of a sub-call."""

    async def speak(args: Any, exec: Any) -> str:
        return "password=hunter2 " if args["n"] == 1 else "x" * 50_000

    config = f"""
[[plugin]]
id = "redact"
use = "redact"
[[plugin]]
id = "spill"
use = "spill"
config = {{ folder = "{tmp_path}/spill", budget = 1000 }}
"""
    async with opened(config, Worker(speak)) as running:
        code = "a, b = await tools.work(n=1), await tools.work(n=2)\nreturn [a, len(b)]"
        assert await running.value(code) == ["password=hunter2 ", 50_000]
        with Reader(running.log) as reader:
            kept = [event.payload for event in reader.events() if event.type == "tool/code-dispatch"]
            everything = "\n".join(reader.export())
    assert "hunter2" not in everything
    assert len(kept[1]["content"][0]["text"]) < 1_100
    assert "spill:" in kept[1]["content"][0]["text"]


async def test_an_abort_stops_program_and_sub_calls_and_leaves_nothing(opened: Any) -> None:
    """The output so far is kept."""
    begun = trio.Event()
    rested: list[int] = []

    async def endless(args: Any, exec: Any) -> int:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            rested.append(args["n"])
        return 0

    controller = AbortController()
    async with opened("", Worker(endless)) as running, trio.open_nursery() as nursery:

        async def stop() -> None:
            await begun.wait()
            controller.abort("enough")

        nursery.start_soon(stop)
        result = await running.run("print('begun', flush=True)\nawait tools.work(n=1)", signal=controller.signal)
        assert rested == [1]
        assert result.error.info.code == "CODE_RUN_FAILED"
        assert "(aborted)" in result.error.message
        assert "begun" in result.content[1]["text"]


async def test_a_program_that_gives_a_call_up_goes_on(opened: Any) -> None:
    """By the means of its own language."""
    rested: list[int] = []

    async def endless(args: Any, exec: Any) -> int:
        if args["n"]:
            return args["n"]  # type: ignore[no-any-return]
        try:
            await trio.sleep_forever()
        finally:
            rested.append(0)
        return 0

    code = """
        import asyncio
        try:
            async with asyncio.timeout(0.2):
                await tools.work(n=0)
        except TimeoutError:
            return await tools.work(n=5)
        """
    async with opened("", Worker(endless)) as running:
        assert await running.value(code) == 5
        assert rested == [0]
        with Reader(running.log) as reader:
            assert [call.code for call in reversed(reader.calls())] == [None, "ABORTED", None]


async def test_side_by_side_calls_overlap_and_keep_their_order(opened: Any) -> None:
    """Twelve that wait for one another in a pool of six, in two halves."""
    waiting: list[int] = []
    go = trio.Event()

    async def together(args: Any, exec: Any) -> int:
        nonlocal go
        waiting.append(args["n"])
        if len(waiting) == 6:
            waiting.clear()
            go.set()
            go = trio.Event()
        else:
            await go.wait()
        return args["n"]  # type: ignore[no-any-return]

    code = "import asyncio\nreturn await asyncio.gather(*(tools.work(n=n) for n in range(12)))"
    worker = Worker(together)
    async with opened("code.max_parallel = 6\n", worker) as running:
        assert await running.value(code) == list(range(12))
    assert worker.ran == list(range(12))


# dsh-run exec as a process.

SLOW = """
import os, sys, trio
from dsh_runtime import tool

inject = ["tools"]


@tool
async def nap() -> str:
    "Sleep for long."
    os.write(2, b"started\\n")
    try:
        await trio.sleep(60)
    finally:
        os.write(2, b"at rest\\n")
    return "awake"


def apply(ctx):
    ctx.tools.register(nap)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A config with a tool that takes long, and a program that calls it."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "dsh.toml").write_text('[host.log]\npath = "log.db"\n[[plugin]]\nid = "slow"\nuse = "./slow.py"\n')
    (tmp_path / "p.py").write_text("print('so far', flush=True)\nawait tools.nap()\n")
    return tmp_path


def in_session(session: int) -> list[str]:
    """The processes of a session and those that come from it, by what the system knows."""
    listed = subprocess.run(["ps", "-eo", "sid=,pid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.split()[0] == str(session) and " Z" not in line]


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=str)
def test_a_signal_brings_an_exec_to_rest(folder: Path, number: signal.Signals, exit_code: int) -> None:
    """The tool unwinds, the result is told, no process is left, and the record has the whole tree."""
    command = [DSH_RUN, "exec", "p.py", "-o", "json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "started\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == exit_code
    assert err.splitlines() == ["at rest", f"error: interrupted by {number.name}"]
    document = json.loads(out)
    assert document["error"]["code"] == "CODE_RUN_FAILED"
    assert "so far" in document["content"][1]["text"]
    assert in_session(process.pid) == []
    with Reader(folder / "log.db") as reader:
        calls = [(call.name, call.code) for call in reader.calls()]
    assert calls == [("nap", "ABORTED"), ("run_code", "CODE_RUN_FAILED")]


def test_a_host_that_is_killed_takes_its_program_along(folder: Path) -> None:
    """And the record says afterwards what was interrupted."""
    command = [DSH_RUN, "exec", "p.py"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "started\n"
        children = children_of(process.pid)
        assert children
        process.kill()
    deadline = time.monotonic() + 20
    while children and time.monotonic() < deadline:
        children = {pid for pid in children if is_alive(pid)}
        time.sleep(0.02)
    assert children == set()
    subprocess.run([DSH_RUN, "check"], cwd=folder, check=True, capture_output=True)  # opens the log
    with Reader(folder / "log.db") as reader:
        assert [(call.name, call.outcome) for call in reader.calls()] == [
            ("nap", "interrupted"),
            ("run_code", "interrupted"),
        ]


def is_alive(pid: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
