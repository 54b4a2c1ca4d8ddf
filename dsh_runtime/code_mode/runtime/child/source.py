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


def load(code: str, names: Mapping[str, Any]) -> Callable[[], Awaitable[Any]]:
    """The function that a program is the body of; ``names`` are what it finds without importing."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    compiled = compile(wrapped(ast.parse(code, FILE)), FILE, "exec", dont_inherit=True)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__.update(names)
    exec(compiled, module.__dict__)
    function: Callable[[], Awaitable[Any]] = module.__dict__.pop(NAME)
    if inspect.isasyncgenfunction(function):
        raise SyntaxError("a program cannot 'yield' outside a function of its own; collect in a list and return it")
    return function


def wrapped(tree: ast.Module) -> ast.Module:
    """The module that defines the function; ``from __future__`` has to stay outside."""
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    body = [node for node in tree.body if node not in future] or [ast.Pass(lineno=1, col_offset=0)]
    module = ast.parse(f"async def {NAME}(): pass", FILE)
    function: Any = module.body[0]
    function.body = body
    module.body[:0] = future
    return module
