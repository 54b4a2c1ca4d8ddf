"""Random programs against a model of what they do: what came in, what was printed, and how they ended agree."""

from __future__ import annotations

import json
import random
from typing import Any

from attrs import define, field
from runtime_kit import Recorder, kind, run, runtime


@define
class Model:
    """What a program is expected to have done."""

    entered: list[tuple[str, Any]] = field(factory=list)
    logs: str = ""
    result: Any = None
    ending: str = "ended"


def value(chance: random.Random, depth: int = 3) -> Any:
    """Some JSON."""
    simple = [
        None,
        True,
        False,
        chance.randint(-(10**20), 10**20),
        chance.random(),
        "ä\u2028\x00🎈"[: chance.randint(0, 5)],
    ]
    if depth == 0 or chance.random() < 0.5:
        return chance.choice(simple)
    if chance.random() < 0.5:
        return [value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    return {f"k{number}": value(chance, depth - 1) for number in range(chance.randint(0, 3))}


def program(chance: random.Random) -> tuple[str, Model]:
    """A program, and what it should do."""
    lines, model = ["import asyncio", "last = None"], Model()
    last: Any = None
    for _ in range(chance.randint(0, 8)):
        some = value(chance)
        match chance.choice(["echo", "caught", "print", "gather", "raise", "fail", "return", "unknown"]):
            case "echo":
                lines.append(f"last = await tools.echo({some!r})")
                model.entered.append(("echo", some if some is not None else {}))
                last = some if some is not None else {}
            case "caught":
                lines += [
                    "try:",
                    f"    await tools.fail({[some]!r})",
                    "except ToolCallError as e:",
                    "    last = e.code",
                ]
                model.entered.append(("fail", [some]))
                last = "SOME_CODE"
            case "unknown":
                lines += [
                    "try:",
                    f"    await tools['a b']({[some]!r})",
                    "except ToolCallError as e:",
                    "    last = e.name",
                ]
                model.entered.append(("a b", [some]))
                last = "ToolNotFoundError"
            case "print":
                lines.append("print(repr(last))")
                model.logs += f"{last!r}\n"
            case "gather":
                count = chance.randint(0, 5)
                lines.append(f"last = await asyncio.gather(*(tools.echo([n, {some!r}]) for n in range({count})))")
                last = [[number, some] for number in range(count)]
                model.entered += [("echo", item) for item in last]
            case "raise":
                if chance.random() < 0.3:
                    lines.append("raise ValueError(last)")
                    model.ending = "exception"
                    break
            case "fail":
                if chance.random() < 0.3:
                    lines.append(f"await tools.fail({[some]!r})")
                    model.entered.append(("fail", [some]))
                    model.ending = "exception"
                    break
            case "return":
                lines.append("return last")
                model.result = last
                break
    return "\n".join(lines), model


async def test_random_programs_do_what_they_say_and_nothing_else() -> None:
    chance = random.Random(20)
    async with runtime() as service:
        for _ in range(120):
            code, model = program(chance)
            bridge = Recorder()
            outcome = await run(service, code, bridge)
            assert kind(outcome) == model.ending, (code, outcome)
            assert bridge.entered == model.entered, code
            assert outcome.logs == model.logs, code
            assert json.dumps(outcome.result) == json.dumps(model.result), code
