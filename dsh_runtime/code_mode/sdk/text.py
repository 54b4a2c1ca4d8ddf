"""The whole text: what a program finds under ``tools``, for the tools that a scope sees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dsh_runtime.code_mode.sdk.tool import signature_of
from dsh_runtime.code_mode.sdk.types import ATOMS
from dsh_runtime.code_mode.sdk.words import Names, type_name
from dsh_runtime.tools.definition import ToolDefinition
from dsh_runtime.tools.names import is_plain, quoted

_HEAD: Final = '''\
from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload


class ToolCallError(Exception):
    """Raised by a call of a tool that failed, or that was not allowed to run."""

    message: str
    name: str | None
    code: str | None
'''
_TAIL: Final = "tools: Tools\n"
_TAKEN: Final = frozenset(
    {"Protocol", "ToolCallError", "Tools", "ToolsByName", "TypeAlias", "TypedDict", "object", "overload", *ATOMS}
)


def sdk_text(tools: Sequence[ToolDefinition]) -> str:
    """The declarations of tools, in their order; a module of Python that a type checker accepts."""
    plain = frozenset(tool.name for tool in tools if is_plain(tool.name))
    names = Names(_TAKEN | plain | {"tools"})
    types: list[str] = []
    methods: list[str] = []
    entries: list[tuple[str, str]] = []
    for tool in tools:
        description = tool.description if isinstance(tool.description, str) else ""
        if tool.name in plain:
            signature = signature_of(tool, names, plain)
            types += signature.types
            methods.append(signature.method(tool.name, description, "    "))
        else:
            signature = signature_of(tool, names, frozenset())
            own = names.new(f"{type_name(tool.name)}Tool")
            types += [*signature.types, f"class {own}(Protocol):\n{signature.method('__call__', description, '    ')}"]
            entries.append((tool.name, own))
    by_name = [_by_name(entries)] if entries else []
    base = "ToolsByName, Protocol" if entries else "Protocol"
    body = "\n".join(methods) or "    pass\n"
    blocks = [_HEAD, *types, *by_name, f"class Tools({base}):\n{body}", _TAIL]
    return "\n\n".join(blocks)


def _by_name(entries: Sequence[tuple[str, str]]) -> str:
    """The tools that are reached by subscript: their names cannot stand behind a dot."""
    mark = "    @overload\n" if len(entries) > 1 else ""
    head = f"{mark}    def __getitem__(self, name: Literal"
    lines = (f"{head}[{quoted(name)}], /) -> {own}: ...\n" for name, own in entries)
    return "class ToolsByName(Protocol):\n" + "".join(lines)


def fenced(text: str) -> str:
    """A text as a block of code in Markdown, from which it cannot break out."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{text.rstrip()}\n{fence}"
