"""What the model and the log get of large results, in a host."""

from __future__ import annotations

import re
import threading
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dsh_plugin_spill
import pytest
import trio
from dsh_hookspecs import AbortController, Accept, Block, CodeDispatchLog, PostToolDecision
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from dsh_runtime import HostError, ToolExecutionInput, define_tool, open_host

LOCATOR = re.compile(r"spill:[0-9a-f]{40}-[0-9a-f]{12}")
Next = Callable[[], Awaitable[PostToolDecision]]


class Host:
    """A host with the plugin and one tool, whose value is its content."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx

    def give(self, value: Any, name: str = "work") -> None:
        """Have the tool give a text, content blocks, or an error."""

        async def execute(args: Any, exec: Any) -> Any:
            if isinstance(value, Exception):
                raise value
            return value

        def render(args: Any, value: Any) -> Any:
            return value if isinstance(value, list) else [{"type": "text", "text": value}]

        tool: Any = define_tool(
            name=name, description="work", parameters={}, output={"type": "json"}, execute=execute, render=render
        )
        self.ctx.tools.register(tool)

    async def call(self, name: str = "work", arguments: Any = None) -> Any:
        signal = AbortController().signal
        return await self.ctx.tools.execute(ToolExecutionInput("c1", name, arguments or {}, signal))


@asynccontextmanager
async def spilling(folder: Path, *, redact: bool = False, plugins: Any = (), **config: Any) -> AsyncIterator[Host]:
    rows: list[Any] = [{"id": "redact", "use": "redact"}] if redact else []
    rows.append({"id": "spill", "use": "spill", "config": {"folder": str(folder), "budget": 1000, **config}})
    async with open_host({"plugin": rows}, plugins=plugins) as host:
        yield Host(host.ctx)


def texts(result: Any) -> list[str]:
    return [block["text"] for block in result.content if block["type"] == "text"]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def stored(folder: Path, text: str) -> str:
    found = LOCATOR.search(text)
    assert found is not None
    return (folder / f"{found[0].removeprefix('spill:')}.txt").read_text(encoding="utf-8")


@pytest.mark.trio
async def test_a_result_within_the_budget_is_left_alone(tmp_path: Path) -> None:
    async with spilling(tmp_path) as host:
        host.give("x" * 1000)
        assert texts(await host.call()) == ["x" * 1000]
    assert files(tmp_path) == []


@pytest.mark.trio
async def test_of_a_large_text_the_model_gets_both_ends_and_where_all_of_it_is(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    async with spilling(tmp_path) as host:
        host.give(text)
        result = await host.call()
    [shown] = texts(result)
    assert len(shown.encode()) <= 1000
    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith("line 998\nline 999\n")
    assert stored(tmp_path, shown) == text


@pytest.mark.trio
async def test_the_canonical_value_stays_whole(tmp_path: Path) -> None:
    async with spilling(tmp_path) as host:
        host.give("x" * 5000)
        assert (await host.call()).value == "x" * 5000


@pytest.mark.trio
async def test_the_content_of_a_failure_is_cut_too(tmp_path: Path) -> None:
    async with spilling(tmp_path) as host:
        host.give(RuntimeError("x" * 5000))
        result = await host.call()
    assert result.is_error
    assert len(texts(result)[0]) <= 1000


def block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


TEXTS = st.builds(lambda text, times: block(text * times), st.text("aé😀\n", max_size=40), st.integers(0, 60))
PICTURES = st.builds(lambda size: {"type": "image", "data": "A" * size, "mimeType": "image/png"}, st.integers(0, 400))
BLOCKS = st.lists(TEXTS | PICTURES, max_size=8)


@given(BLOCKS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_the_texts_of_a_result_never_exceed_the_budget(tmp_path: Path, blocks: list[Any]) -> None:
    async def main() -> Any:
        async with spilling(tmp_path, block_budget=200) as host:
            host.give(blocks)
            return await host.call()

    result = trio.run(main)
    assert sum(len(text.encode()) for text in texts(result)) <= 1000
    if all(block["type"] == "text" for block in blocks) and sum(len(b["text"].encode()) for b in blocks) <= 1000:
        assert result.content == blocks


@pytest.mark.trio
async def test_several_texts_share_the_budget_and_what_is_small_stays_whole(tmp_path: Path) -> None:
    async with spilling(tmp_path) as host:
        host.give([block("a" * 2000), block("short"), block("b" * 2000)])
        first, second, third = texts(await host.call())
    assert second == "short"
    assert stored(tmp_path, first) == "a" * 2000
    assert stored(tmp_path, third) == "b" * 2000
    assert len(first) + len(second) + len(third) <= 1000


@pytest.mark.trio
async def test_texts_that_would_get_too_little_are_cut_as_one(tmp_path: Path) -> None:
    picture = {"type": "image", "data": "A", "mimeType": "image/png"}
    async with spilling(tmp_path) as host:
        host.give([{"type": "text", "text": f"{n}" * 200} for n in range(9)] + [picture])
        result = await host.call()
    [shown] = texts(result)
    assert result.content[1] == picture
    assert stored(tmp_path, shown) == "\n".join(f"{n}" * 200 for n in range(9))


@pytest.mark.trio
async def test_a_picture_over_its_own_budget_is_replaced_by_a_note(tmp_path: Path) -> None:
    small, large = ({"type": "image", "data": "A" * size, "mimeType": "image/png"} for size in (10, 5000))
    async with spilling(tmp_path, block_budget=1000) as host:
        host.give([small, large])
        result = await host.call()
    assert result.content[0] == small
    assert "a block of type image" in result.content[1]["text"]


@pytest.mark.trio
async def test_what_is_stored_and_shown_is_masked(tmp_path: Path) -> None:
    secret = "password=" + "hunter2"
    async with spilling(tmp_path, redact=True) as host:
        host.give(f"{secret}\n" + "x" * 5000)
        [shown] = texts(await host.call())
    assert shown.startswith("password=[redacted: secret]\n")
    assert "hunter2" not in stored(tmp_path, shown)


@pytest.mark.trio
async def test_a_large_text_is_masked_beside_the_event_loop(tmp_path: Path) -> None:
    threads: list[int] = []

    class Masking:
        name = "masking"
        provides = ("redact",)

        def apply(self, ctx: Any) -> None:
            ctx.provide("redact", self)

        def text(self, text: str) -> str:
            threads.append(threading.get_ident())
            return text.replace("hunter2", "-")

    async with spilling(tmp_path, plugins=[Masking()]) as host:
        for size in (5_000, 500_000):
            host.give("hunter2 " * (size // 8), name=f"work{size}")
            [shown] = texts(await host.call(f"work{size}"))
            assert "hunter2" not in shown + stored(tmp_path, shown)
    assert [thread == threading.get_ident() for thread in threads] == [True, False]


@pytest.mark.trio
async def test_a_store_that_fails_leaves_the_ends_and_says_why(tmp_path: Path) -> None:
    async with spilling(tmp_path, store_limit=100) as host:
        host.give("x" * 5000)
        [shown] = texts(await host.call())
    assert "could not be stored: the text has 5000 bytes, more than the 100" in shown
    assert shown.startswith("xxx")
    assert len(shown) <= 1000


@pytest.mark.trio
async def test_a_store_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    released = threading.Event()
    monkeypatch.setattr(dsh_plugin_spill.Store, "put", lambda *args: released.wait(10))
    async with spilling(tmp_path, patience=2) as host:
        host.give("x" * 5000)
        [shown] = texts(await host.call())
        released.set()
    assert "the store took too long" in shown
    assert trio.current_time() >= 2


@pytest.mark.trio
@pytest.mark.parametrize(
    "decision",
    [Accept(content=[block("y" * 5000)]), Block("y" * 5000), Block([block("y" * 5000)])],
)
async def test_what_policies_behind_it_say_is_cut(tmp_path: Path, decision: PostToolDecision) -> None:
    async def policy(next: Next) -> PostToolDecision:
        return decision

    talker = SimpleNamespace(name="talker", apply=lambda ctx: ctx.on("tools/post-execute", policy))
    async with spilling(tmp_path, plugins=[talker]) as host:
        host.give("short")
        [shown] = texts(await host.call())
    assert len(shown) <= 1000
    assert stored(tmp_path, shown) == "y" * 5000


@pytest.mark.trio
@pytest.mark.parametrize("kind", ["content", "feedback"])
async def test_what_policies_behind_it_say_is_masked_before_it_is_cut(tmp_path: Path, kind: str) -> None:
    said = "password=" + "hunter2\n" + "y" * 5000
    decision = Accept(content=[block(said)]) if kind == "content" else Block(said)

    async def policy(next: Next) -> PostToolDecision:
        return decision

    talker = SimpleNamespace(name="talker", apply=lambda ctx: ctx.on("tools/post-execute", policy))
    async with spilling(tmp_path, redact=True, plugins=[talker]) as host:
        host.give("short")
        [shown] = texts(await host.call())
    assert "hunter2" not in shown + stored(tmp_path, shown)


@pytest.mark.trio
async def test_a_sub_calls_content_is_cut_on_its_way_into_the_log(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "x" * 5000}]
    outer: Any = SimpleNamespace(call_id="c1")
    async with spilling(tmp_path) as host:
        dispatch = CodeDispatchLog(outer, None, "c1:code:1", "work", False, content)
        logged = await host.ctx.waterfall("tools/code-dispatch-log", dispatch, default=content)
    assert len(logged[0]["text"]) <= 1000
    assert stored(tmp_path, logged[0]["text"]) == "x" * 5000


@pytest.mark.trio
async def test_the_whole_text_can_be_read_in_windows(tmp_path: Path) -> None:
    text = "".join(f"Zeile {number} – ü\n" for number in range(500))
    async with spilling(tmp_path, tool=True) as host:
        host.give(text)
        [shown] = texts(await host.call())
        assert "spill_read" in shown
        locator, parts, offset = LOCATOR.findall(shown)[0], [], 0
        while offset < len(text.encode()):
            result = await host.call("spill_read", {"locator": locator, "offset": offset})
            assert len(texts(result)[0].encode()) <= 1000
            assert "left out" not in texts(result)[0]
            parts.append(result.value["text"])
            offset = result.value["next_offset"]
    assert "".join(parts) == text


@pytest.mark.trio
@pytest.mark.parametrize("locator", ["spill:../../etc/passwd", "spill:" + "0" * 40 + "-" + "0" * 12])
async def test_the_tool_reads_nothing_but_what_is_stored(tmp_path: Path, locator: str) -> None:
    async with spilling(tmp_path, tool=True) as host:
        result = await host.call("spill_read", {"locator": locator})
    assert result.error.info.code == "UNKNOWN_LOCATOR"


@pytest.mark.trio
async def test_without_the_option_there_is_no_tool_and_no_word_of_it(tmp_path: Path) -> None:
    async with spilling(tmp_path) as host:
        host.give("x" * 5000)
        assert "spill_read" not in texts(await host.call())[0]
        assert [tool["name"] for tool in host.ctx.tools.schemas()] == ["work"]


@pytest.mark.trio
@pytest.mark.parametrize(
    "config", [{}, {"folder": "x", "budget": 100}, {"folder": "x", "store_limit": 0}, {"folder": "x", "patience": 0}]
)
async def test_a_config_with_a_mistake_stops_the_start(config: dict[str, Any]) -> None:
    with pytest.raises(HostError):
        async with open_host({"plugin": [{"id": "spill", "use": "spill", "config": config}]}):
            pass  # pragma: no cover


@pytest.mark.trio
async def test_a_folder_that_cannot_be_used_stops_the_start_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(HostError, match="spill folder"):
        async with spilling(tmp_path / "file"):
            pass  # pragma: no cover


README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.trio
async def test_the_readmes_config_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tomllib.loads(README.partition("```toml\n")[2].partition("```")[0])
    async with open_host(config) as host:
        assert host.ctx.tools.get("spill_read") is not None
    assert (tmp_path / ".dsh" / "spill").is_dir()


def test_the_readmes_program_gives_what_its_comment_says() -> None:
    program = README.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(program, names)
    expression, _, expected = program.strip().rpartition("\n")[2].partition("  # ")
    assert repr(eval(expression, names)) == expected
