"""What renders a typed value is checked against its type."""

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


async def pay(args: Order, exec: ToolRunContext) -> Receipt:
    return Receipt(args.number * 2.0)


wrong_member = define_tool(
    name="pay",
    description="Pay an order.",
    parameters=Order,
    output=Receipt,
    execute=pay,
    render=lambda args, value: [{"type": "text", "text": value.sum}],  # E: "Receipt" has no attribute "sum"
)
