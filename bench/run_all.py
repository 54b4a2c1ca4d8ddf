"""Runs every benchmark in a process of its own, one after the other, and prints all tables.

    python bench/run_all.py [--json] [--only call,batch] [--rounds N]

ends with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import Figure, as_json, table

HERE = Path(__file__).parent
SUBJECTS = {
    "call": "one small call",
    "arguments": "large arguments",
    "registry": "many tools",
    "memory": "memory",
    "batch": "a batch of sleeps",
    "record": "the record",
    "sessions": "the session log",
    "reload": "reload, beyond importing and applying",
    "watcher": "watching, and the watchdog",
    "code_runtime": "programs in processes of their own",
    "code_mode": "a program's calls",
}


def run(subject: str, rounds: int | None) -> list[Figure]:
    command = [sys.executable, str(HERE / f"{subject}_bench.py"), "--json"]
    if rounds is not None:
        command += ["--rounds", str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if not done.stdout:
        raise SystemExit(f"{subject}_bench.py ended with {done.returncode} and no figures")
    members = ("name", "value", "unit", "goal", "at_least")
    figures: list[dict[str, Any]] = json.loads(done.stdout)
    return [Figure(**{member: figure[member] for member in members}) for figure in figures]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the benchmarks, side by side with the peers.")
    parser.add_argument("--only", default=",".join(SUBJECTS), help="subjects, separated by commas")
    parser.add_argument("--rounds", type=int, default=None, help="rounds of each benchmark")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    found = {}
    for subject in options.only.split(","):
        found[subject] = run(subject, options.rounds)
        if not options.json:
            print(table(SUBJECTS[subject], found[subject]), end="\n\n", flush=True)
    if options.json:
        plain = [{"subject": subject, **as_json(each)} for subject, figures in found.items() for each in figures]
        print(json.dumps(plain, indent=1))
    return int(any(each.met is False for figures in found.values() for each in figures))


if __name__ == "__main__":
    sys.exit(main())
