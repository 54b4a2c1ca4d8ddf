"""What a tool is: its declaration, frozen, and the input of one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import field, frozen
from dsh_hookspecs import AbortSignal, Content, ExecutionToken, JsonValue

#: Names that only the runtime itself registers.
RESERVED_NAMES: Final = frozenset({"run_code"})


@frozen(eq=False)
class ToolOutput:
    """A tool's output: the schema of its canonical value, and how the value is shown.

    ``render(args, value)`` gives the content for the model (without it: a text as it is, anything else as JSON);
    ``presentation_meta(args, value)`` a JSON value for a UI, for top-level calls only (``None``: no meta). Both are
    pure. ``relayed`` is the output schema of a foreign tool, in any dialect, as clients are to see it; ``schema`` alone
    is enforced. Without ``structured`` the content says all there is: a value that is no object is for programs alone,
    and clients see neither it nor a schema.
    """

    schema: Any
    render: Callable[[Any, Any], Content] | None = None
    presentation_meta: Callable[[Any, Any], JsonValue] | None = None
    relayed: Mapping[str, Any] | None = field(default=None, kw_only=True)
    structured: bool = field(default=True, kw_only=True)


@frozen(eq=False)
class ToolReply:
    """What a body may return in place of its value alone: the value, and the content that goes with it.

    For tools whose content is not made from the value, such as a remote server's. The value is checked like any other,
    and takes ``render`` if a policy puts another one in its place.
    """

    value: Any
    content: Content


@frozen(eq=False)
class ArgumentCheck:
    """How arguments are checked against a compiled schema, and what the body gets of them."""

    compiled: Any
    convert: Callable[[JsonValue], Any] | None = None


@frozen(eq=False)
class ToolDefinition:
    """A tool. Made by ``define_tool`` or ``@tool``; a raw one relays ``parameters`` and checks its own input.

    ``execute(args, exec)`` is async, or sync (then it runs in a worker thread). ``timeout`` is in seconds.
    ``finalize_content(exec, result)`` is the tool's own last word on the content of every result (``None`` keeps it).
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    output: ToolOutput
    execute: Callable[..., Any]
    finalize_content: Callable[[Any, Any], Content | None] | None = None
    timeout: float | None = None
    is_concurrency_safe: Callable[[Any], bool] | None = None
    idempotent: bool = False
    present_call: Callable[[Any], Any] | None = None
    present_result: Callable[[Any, Any], Any] | None = None
    check: ArgumentCheck | None = field(default=None, kw_only=True, repr=False)


@frozen(eq=False, slots=False)
class ToolExecutionInput:
    """One call as a caller describes it.

    ``agent`` is the scope key on whose behalf it runs; a nested dispatcher gives its own ``parent`` token and hands
    ``root_call_id`` on.
    """

    call_id: str
    name: str
    arguments: Any
    signal: AbortSignal
    agent: Any = None
    parent: ExecutionToken | None = None
    root_call_id: str | None = None
