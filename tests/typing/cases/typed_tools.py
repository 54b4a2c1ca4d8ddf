"""`define_tool` with a class types the arguments and the value; a wrong use is an error."""

from __future__ import annotations

from attrs import frozen
from dsh_hookspecs import ToolRunContext

from dsh_runtime import ToolDefinition, define_tool


@frozen
class Order:
    number: int
    note: str | None = None


@frozen
class Receipt:
    total: float


async def pay(args: Order, exec: ToolRunContext) -> Receipt:
    return Receipt(args.number * 2.0)


def pay_in_thread(args: Order, exec: ToolRunContext) -> Receipt:
    return Receipt(float(args.total))  # E: "Order" has no attribute "total"


good: ToolDefinition = define_tool(
    name="pay",
    description="Pay an order.",
    parameters=Order,
    output=Receipt,
    execute=pay,
    render=lambda args, value: [{"type": "text", "text": f"{args.number}: {value.total}"}],
    is_concurrency_safe=lambda args: args.number > 0,
)

sync: ToolDefinition = define_tool(
    name="pay", description="Pay an order.", parameters=Order, output=Receipt, execute=pay_in_thread
)

by_spec: ToolDefinition = define_tool(
    name="pay",
    description="Pay an order.",
    parameters={"number": {"type": "integer", "required": True}},
    output={"type": "string"},
    execute=lambda args: str(args["number"]),
)

no_output = define_tool(name="pay", description="Pay.", parameters=Order, execute=pay)  # E: No overload variant
