"""What the tutorial says about its tool."""

from __future__ import annotations

from typing import Any

import pytest

from dsh_runtime import (
    AbortController,
    ToolExecutionFailure,
    ToolExecutionInput,
    ToolExecutionSuccess,
    open_host,
)

GREET = {"plugin": [{"id": "greet", "use": "greet"}]}


async def greet(arguments: Any) -> ToolExecutionSuccess | ToolExecutionFailure:
    call = ToolExecutionInput("c1", "greet", arguments, AbortController().signal)
    async with open_host(GREET) as host:
        result: ToolExecutionSuccess | ToolExecutionFailure = await host.ctx.tools.execute(call)
        return result


@pytest.mark.trio
async def test_it_greets_by_name() -> None:
    result = await greet({"name": "Ada"})
    assert isinstance(result, ToolExecutionSuccess)
    assert result.value == "Hello, Ada!"
    assert result.content == [{"type": "text", "text": "Hello, Ada!"}]


@pytest.mark.trio
@pytest.mark.parametrize("arguments", [{}, {"name": 5}])
async def test_arguments_that_are_no_name_are_refused(arguments: dict[str, Any]) -> None:
    result = await greet(arguments)
    assert isinstance(result, ToolExecutionFailure)
    assert result.error.info is not None
    assert result.error.info.code == "INVALID_ARGS"


@pytest.mark.trio
async def test_a_model_reads_the_docstring() -> None:
    async with open_host(GREET) as host:
        [schema] = [each for each in host.ctx.tools.schemas() if each["name"] == "greet"]
    assert schema["description"] == "Greet someone by name."
    assert schema["parameters"]["properties"] == {"name": {"type": "string", "description": "The name to greet."}}
    assert schema["parameters"]["required"] == ["name"]
