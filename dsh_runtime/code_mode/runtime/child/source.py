"""Turns the text of a program into an async function, with the lines numbered as they were written.

The text is parsed as a module, where ``return`` and ``await`` are no errors yet, and what came out becomes the body of
an ``async def``: no line moves, and no string changes by being indented.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import types
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

FILE = "<program>"
NAME = "program"

# Made beforehand, and used once in each process.
_SHELL = ast.parse(f"async def {NAME}(): pass", FILE)
_FUNCTION: Any = _SHELL.body[0]
_NOTHING = _FUNCTION.body[0]


def load(code: str, names: Mapping[str, Any]) -> Callable[[], Awaitable[Any]]:
    """The function that a program is the body of; ``names`` are what it finds without importing."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    compiled = compile(wrapped(ast.parse(code, FILE)), FILE, "exec", dont_inherit=True)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__.update(names)
    exec(compiled, module.__dict__)
    function: Any = module.__dict__.pop(NAME)
    if function.__code__.co_flags & inspect.CO_ASYNC_GENERATOR:
        raise SyntaxError("a program cannot 'yield' outside a function of its own; collect in a list and return it")
    checked: Callable[[], Awaitable[Any]] = function
    return checked


def wrapped(tree: ast.Module) -> ast.Module:
    """The module that defines the function; ``from __future__`` has to stay outside."""
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    _FUNCTION.body = [node for node in tree.body if node not in future] or [_NOTHING]
    _SHELL.body = [*future, _FUNCTION]
    return _SHELL
