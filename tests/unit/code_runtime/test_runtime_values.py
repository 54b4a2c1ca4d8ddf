"""Arguments and results that are no JSON end a program and reach nobody."""

from __future__ import annotations

import pytest
from runtime_kit import Recorder, kind, run, run_one, runtime

NOT_JSON = [
    "{1}",
    "object()",
    "b'x'",
    "float('nan')",
    "[float('inf')]",
    "{1: 2}",
    "{None: 2}",
    "{'a': {(1, 2): 3}}",
    "'\\ud800'",
    "{'\\udfff': 1}",
    "10**5000",
    "1j",
    "...",
    "tools",
    "(lambda: 0)",
    "[[], [1, {'a': [set()]}]]",
]


async def test_arguments_that_are_no_json_are_an_exception_and_reach_nobody() -> None:
    bridge = Recorder()
    async with runtime() as service:
        for value in NOT_JSON:
            bridge.closed = 0
            assert (value, kind(await run(service, f"await tools.echo({value})", bridge))) == (value, "exception")
    assert bridge.entered == []


async def test_results_that_are_no_json_are_an_exception() -> None:
    async with runtime() as service:
        for value in NOT_JSON:
            outcome = await run(service, f"return {value}")
            assert (value, kind(outcome), outcome.has_result) == (value, "exception", False)


@pytest.mark.parametrize(
    "make",
    [
        "x = []\nx.append(x)",
        "x = {}\nx['x'] = [x]",
        "x = []\nfor _ in range(100_000): x = [x]",
        "x = []\nfor _ in range(60): x = [x, x]",
        "x = 'x' * 2_000_000",
        "x = [[]] * 900_000",
        "class D(dict):\n    def items(self):\n        while True: yield 'a', 1\nx = D(a=1)",
    ],
    ids=["itself", "itself below", "deep", "shared", "large", "many", "endless"],
)
async def test_recursion_and_size_in_values_are_exceptions(make: str) -> None:
    bridge = Recorder()
    outcome = await run_one(f"{make}\nawait tools.echo(x)", bridge, frame_bytes=1_000_000, memory=64 * 1024 * 1024)
    assert kind(outcome) in ("exception", "memory" if "class D" in make else "exception")
    assert bridge.entered == []


async def test_the_error_says_where_a_value_is_no_json() -> None:
    failure = (await run_one("await tools.echo({'a': [1, {2}]})")).failure
    assert failure is not None
    assert "the argument of tools.echo is no JSON: it['a'][1] is" in failure.message
    assert "of type set" in failure.message
