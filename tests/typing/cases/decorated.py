"""`@tool` makes a definition, bare and with options."""

from __future__ import annotations

from dsh_runtime import Context, ToolDefinition, tool


@tool
async def greet(name: str) -> str:
    """Greet someone."""
    return f"Hello, {name}!"


@tool(name="count", idempotent=True)
def count_letters(text: str) -> int:
    """Count letters."""
    return len(text)


bare: ToolDefinition = greet
with_options: ToolDefinition = count_letters
not_a_function: str = greet  # E: Incompatible types in assignment


def apply(ctx: Context) -> None:
    undo = ctx.tools.register(greet)
    undo()
    ctx.on("tools/change", lambda: None, prepended=True)  # E: Unexpected keyword argument "prepended"
