"""Where ``is_error`` is plainly true or false, mypy knows which result it is. (pyright wants ``is True``.)"""

from __future__ import annotations

from dsh_hookspecs import JsonValue, ToolErrorInfo

from dsh_runtime import AbortController, ToolExecutionInput, ToolRuntime, open_host


async def value_or_code(name: str) -> JsonValue:
    async with open_host("dsh.toml") as host:
        call = ToolExecutionInput("1", name, {}, AbortController().signal)
        runtime = host.ctx.tools
        return await read(runtime, call)


async def read(runtime: ToolRuntime, call: ToolExecutionInput) -> JsonValue:
    result = await runtime.execute(call)
    print(result.value)  # E: has no attribute "value"
    if result.is_error:
        info: ToolErrorInfo | None = result.error.info
        print(result.value)  # E: "ToolExecutionFailure" has no attribute "value"
        return info.code if info is not None else None
    print(result.error)  # E: "ToolExecutionSuccess" has no attribute "error"
    return result.value
