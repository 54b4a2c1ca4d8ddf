"""What one small call costs, beside the same safety written by hand (F1, F2) and beside the peers."""

from __future__ import annotations

import argparse

from contenders import PEERS, f1, f2, ours, peers
from harness import Figure, interleaved, main, missing

ONE, FIVE = "ours, 1 a stage", "ours, 5 a stage"


def measure(options: argparse.Namespace) -> list[Figure]:
    absent = missing({name: module for name, (module, _, _) in PEERS.items()})
    hosts = [ours(0), ours(1), ours(1, finalize=True), ours(5)]
    rounds = interleaved([f1(), f2(), *hosts, *peers(absent)], rounds=options.rounds, count=1000)
    goals = [rounds.against(ONE, "F2", 1.0), rounds.against(FIVE, "F2", 1.6)]
    for peer, goal in (("mcp direct", 0.7), ("fastmcp, 1 middleware", 0.09)):
        if peer not in absent:
            goals.append(rounds.against(ONE, peer, goal))
    return [*rounds.figures(), *goals]


if __name__ == "__main__":
    main("one small call", measure, rounds=21)
