"""How a program reaches a tool: ``tools.name``, or ``tools["odd-name"]`` where the name cannot stand behind a dot."""

from __future__ import annotations

import keyword
from typing import Final


def is_plain(name: str) -> bool:
    """Whether a name means the same behind a dot, wherever it is written.

    Other letters than ASCII's are normalised there, and names that begin with an underscore may be mangled.
    """
    return name.isascii() and name.isidentifier() and not name.startswith("_") and not keyword.iskeyword(name)


def reached(name: str) -> str:
    """The expression that stands for a tool in a program."""
    return f"tools.{name}" if is_plain(name) else f"tools[{quoted(name)}]"


def quoted(text: str) -> str:
    """A text as a literal of Python between double quotes, in characters that can be seen."""
    inner = "".join(_ESCAPES.get(char) or (char if char.isprintable() else _escaped(char)) for char in text)
    return f'"{inner}"'


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
