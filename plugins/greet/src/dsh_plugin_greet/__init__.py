"""The tutorial's tool: it greets someone by name."""

from dsh_hookspecs import Context

from dsh_runtime import tool

name = "greet"  # the plugin's name, which logs and errors use
inject = ["tools"]  # ctx.tools is there because of this line


@tool
async def greet(name: str) -> str:
    """Greet someone by name.

    Args:
        name: The name to greet.
    """
    return f"Hello, {name}!"


def apply(ctx: Context) -> None:
    """Register the tool for as long as the plugin is loaded."""
    ctx.tools.register(greet)
