"""What the tests of reloading share: a folder with a config and plugins, a running host on it, and calls."""

from __future__ import annotations

import contextlib
import itertools
import sys
import textwrap
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from dsh_runtime import AbortController, Fiber, Host, ToolExecutionInput, open_host

#: A plugin with one tool, ``version``, that answers with a number.
TOOL = """
from dsh_runtime import ToolOutput, define_tool
from rk_notes import log

VERSION = {version}
inject = ["tools"]

def apply(ctx):
    log.append(f"+tool {{VERSION}}")
    ctx.effect(lambda: lambda: log.append(f"-tool {{VERSION}}"))
    ctx.tools.register(define_tool(
        name="version", description="Tells the version.", parameters={{}},
        output=ToolOutput(schema={{"type": "integer"}}), execute=execute,
    ))

async def execute(args, exec):
    return VERSION
"""

NO_LOG = "[host.log]\nenabled = false\n"
_numbers = itertools.count()


class Project:
    """A folder that a host is opened on. ``log`` is a list that plugins find as ``rk_notes.log``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes: Any = ModuleType("rk_notes")
        self.log: list[Any] = []
        self.notes.log = self.log
        self.host: Host

    def write(self, file: str, source: str, **values: Any) -> Path:
        """Write a file; with ``values`` its source is a template."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        text = textwrap.dedent(source)
        path.write_text(text.format(**values) if values else text)
        return path

    def config(self, *rows: str, host: str = NO_LOG) -> Path:
        """Write the config: each row is ``id = use``, with lines of its config behind it."""
        return self.write("dsh.toml", host + "".join(map(_row, rows)))

    @contextlib.asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[Host]:
        """A host on the folder's config."""
        async with open_host(self.folder / "dsh.toml", **options) as host:
            self.host = host
            yield host

    async def save(self, file: str, source: str, **values: Any) -> Any:
        """Write a file and have the host told of it; gives the report."""
        return await self.host.reload.changed([self.write(file, source, **values)])

    async def call(self, tool: str = "version", arguments: Any = None) -> Any:
        """Call a tool; gives the result."""
        call = ToolExecutionInput(f"call-{next(_numbers)}", tool, arguments or {}, AbortController().signal)
        return await self.host.ctx.tools.execute(call)

    async def value(self, tool: str = "version", arguments: Any = None) -> Any:
        """Call a tool that succeeds; gives its value."""
        result = await self.call(tool, arguments)
        assert not result.is_error, result
        return result.value

    def fiber(self, plugin: str) -> Fiber:
        """The fiber of a plugin, as the host knows it."""
        (found,) = [one.fiber for one in self.host.plugins if one.id == plugin and one.fiber is not None]
        return found

    @property
    def kernel(self) -> Any:
        """The kernel of the running host."""
        return self.host.ctx.fiber.kernel


def _row(row: str) -> str:
    head, *lines = row.split("\n")
    name, use = (part.strip() for part in head.split("="))
    options = "".join(f"{line}\n" for line in lines if line.startswith("!")).replace("!", "")
    config = "".join(f"{line}\n" for line in lines if not line.startswith("!"))
    return f'[[plugin]]\nid = "{name}"\nuse = "{use}"\n{options}' + (f"[plugin.config]\n{config}" if config else "")


@contextlib.contextmanager
def project_in(folder: Path) -> Iterator[Project]:
    """A project whose modules are gone afterwards."""
    project = Project(folder)
    before = dict(sys.modules)
    sys.modules["rk_notes"] = project.notes
    sys.path.insert(0, str(folder))
    try:
        yield project
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name not in before]:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if name == "rk_notes" or file.startswith(str(folder)):
                del sys.modules[name]


def ids(plugins: Iterable[Any]) -> list[str]:
    """The ids in a part of a report."""
    return [one.id for one in plugins]
