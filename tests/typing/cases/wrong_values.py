"""A body whose value is not of the declared output's type is an error."""

from __future__ import annotations

from attrs import frozen
from dsh_hookspecs import ToolRunContext

from dsh_runtime import define_tool


@frozen
class Order:
    number: int


@frozen
class Receipt:
    total: float


async def pay_nothing(args: Order, exec: ToolRunContext) -> str:
    return "nothing"


wrong_value = define_tool(
    name="pay",
    description="Pay an order.",
    parameters=Order,
    output=Receipt,
    execute=pay_nothing,  # E: incompatible type
)
