"""What a long-lived host keeps of its calls: resident memory after 100,000 and after 1,000,000 of them."""

from __future__ import annotations

import argparse
import gc

import trio
from contenders import ours
from harness import Figure, Operation, main

FIRST, LAST = 100_000, 1_000_000


def resident() -> float:
    """Resident memory of this process, in MB (Linux)."""
    gc.collect()
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


async def call(operation: Operation, count: int) -> float:
    for _ in range(count):
        await operation()
    return resident()


async def grown() -> list[Figure]:
    async with ours(1).open() as operation:
        first = await call(operation, FIRST)
        last = await call(operation, LAST - FIRST)
    return [
        Figure(f"resident at {FIRST:,} calls", first, "MB"),
        Figure(f"resident at {LAST:,} calls", last, "MB"),
        Figure("growth in between", last - first, "MB", 2),
    ]


def measure(options: argparse.Namespace) -> list[Figure]:
    return trio.run(grown)


if __name__ == "__main__":
    main("memory", measure, rounds=1)
