"""The tour's own folder: a config, files to work on, and a plugin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from dsh_runtime.cli.errors import CliError
from dsh_runtime.cli.installed import is_installed

WHEELS: Final = ("greet", "fs", "shell", "permission-gate", "timeout", "approval-terminal")

NOTES: Final = "Buy milk.\n"

LOG: Final = "log.db"

PATIENCE: Final = 60
"""The seconds that a person has to answer."""

_CONFIG: Final = """\
[host]
approval_timeout = PATIENCE

[host.log]
path = "log.db"               # every call is on record there

[[plugin]]
id = "greet"
use = "greet"                 # a wheel: dsh-plugin-greet

[[plugin]]
id = "fs"
use = "fs"

[plugin.config]
roots = [ROOT]
exclude = ["**/.env"]         # no file tool reads, lists or searches it, whatever the gate says

[[plugin]]
id = "shell"
use = "shell"                 # runs commands; nothing is read from the surroundings of dsh-run

[plugin.config]
folder = ROOT

[[plugin]]
id = "slow"
use = "./slow.py"             # a file beside this one

[[plugin]]
id = "gate"
use = "permission-gate"

[plugin.config]
default = "allow"

[[plugin.config.rules]]
action = "deny"
tools = ["fs_*"]
paths = { path = ["**/.env"] }
reason = "secrets stay where they are"

[[plugin.config.rules]]
action = "ask"
tools = ["fs_write", "fs_edit"]
reason = "it changes a file"

[[plugin.config.rules]]
action = "ask"
tools = ["shell_run"]
reason = "a command can do anything"

[[plugin]]
id = "timeout"
use = "timeout"
"""

_PLUGIN: Final = '''\
"""Two tools that get into trouble."""

import trio

from dsh_runtime import tool

inject = ["tools"]


@tool
async def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return a / b


@tool(timeout=0.25)
async def count_sheep(number: int) -> int:
    """Count sheep, one a second."""
    for _ in range(number):
        await trio.sleep(1)
    return number


def apply(ctx):
    ctx.tools.register(divide)
    ctx.tools.register(count_sheep)
'''


def write_folder(folder: Path) -> Path:
    """Fill the folder; give back the config file."""
    files = {
        "dsh.toml": _CONFIG.replace("ROOT", json.dumps(str(folder))).replace("PATIENCE", str(PATIENCE)),
        "slow.py": _PLUGIN,
        "notes.txt": NOTES,
        ".env": "TOKEN=not-a-real-one\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder / "dsh.toml"


def check_wheels() -> None:
    """The tour needs plugins that come as wheels of their own."""
    missing = [name for name in WHEELS if not is_installed(name)]
    if missing:
        names = ", ".join(f"'{name}'" for name in missing)
        wheels = " ".join(f"dsh-plugin-{name}" for name in missing)
        raise CliError(f"the demo uses plugins that are not installed: {names}; run: pip install {wheels}")
