"""The author's ways to a tool: ``define_tool`` with a spec or a type, ``@tool`` on an annotated function.

Both give a :class:`ToolDefinition` whose arguments are checked before the body runs, and whose other functions
(``render``, ``present_call``, …) get the same checked, typed arguments as the body.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import UnionType
from typing import Any, Generic, TypeAlias, TypedDict, TypeVar, Unpack, overload

from dsh_hookspecs import Content, HarnessError, JsonValue, ToolArgsError, ToolRunContext

from dsh_runtime.core.events import is_async
from dsh_runtime.tools.definition import ArgumentCheck, ToolDefinition, ToolOutput
from dsh_runtime.values import CompiledSchema, compile_schema, parameter_spec_to_json_schema, value_spec_to_json_schema

A = TypeVar("A")
V = TypeVar("V")


class ToolDefinitionError(HarnessError):
    """A tool is declared in a way that cannot work."""

    default_code = "TOOL_INVALID"


Body: TypeAlias = Callable[[A, ToolRunContext], Awaitable[V] | V] | Callable[[A], Awaitable[V] | V]


class ToolOptions(TypedDict, Generic[A], total=False):
    """What a tool may declare beside name, description, parameters, output and body."""

    finalize_content: Callable[[Any, Any], Content | None] | None
    timeout: float | None
    is_concurrency_safe: Callable[[A], bool] | None
    idempotent: bool
    present_call: Callable[[A], Any] | None
    present_result: Callable[[A, Any], Any] | None


@overload
def define_tool(
    *,
    name: str,
    description: str,
    parameters: type[A],
    output: type[V],
    execute: Body[A, V],
    render: Callable[[A, V], Content] | None = None,
    presentation_meta: Callable[[A, V], JsonValue] | None = None,
    **options: Unpack[ToolOptions[A]],
) -> ToolDefinition: ...


@overload
def define_tool(
    *,
    name: str,
    description: str,
    parameters: type[A],
    output: ToolOutput | Mapping[str, Any] | UnionType,
    execute: Body[A, Any],
    render: Callable[[A, Any], Content] | None = None,
    presentation_meta: Callable[[A, Any], JsonValue] | None = None,
    **options: Unpack[ToolOptions[A]],
) -> ToolDefinition: ...


@overload
def define_tool(
    *,
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    output: type[V],
    execute: Body[Any, V],
    render: Callable[[Any, V], Content] | None = None,
    presentation_meta: Callable[[Any, V], JsonValue] | None = None,
    **options: Unpack[ToolOptions[Any]],
) -> ToolDefinition: ...


@overload
def define_tool(
    *,
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    output: ToolOutput | Mapping[str, Any] | UnionType,
    execute: Body[Any, Any],
    render: Callable[[Any, Any], Content] | None = None,
    presentation_meta: Callable[[Any, Any], JsonValue] | None = None,
    **options: Unpack[ToolOptions[Any]],
) -> ToolDefinition: ...


def define_tool(
    *,
    name: str,
    description: str,
    parameters: Any,
    output: Any,
    execute: Callable[..., Any],
    render: Callable[[Any, Any], Content] | None = None,
    presentation_meta: Callable[[Any, Any], JsonValue] | None = None,
    **options: Unpack[ToolOptions[Any]],
) -> ToolDefinition:
    """Declare a tool.

    ``parameters`` is a parameter spec (``{"path": {"type": "string", "required": True}}``), or an attrs class or
    TypedDict, of which the body then gets an instance. ``output`` is a :class:`ToolOutput`, a value spec
    (``{"type": "string"}``) or a type; of a typed output the body returns an instance. ``execute(args, exec)``, or
    ``execute(args)``, is async or sync; a sync one runs in a worker thread. ``timeout`` is in seconds.

    Raises :class:`JsonSchemaError` with every violation of a spec.
    """
    schema, convert = _parameters(parameters)
    declared, unstructure = _output(output, render, presentation_meta, name)
    check = ArgumentCheck(_compiled(schema), convert)
    return ToolDefinition(
        name=name,
        description=description,
        parameters=schema,
        output=declared,
        execute=_body(execute, unstructure, name),
        check=check,
        **_checked_options(options, check),
    )


def _checked_options(options: Mapping[str, Any], check: ArgumentCheck) -> dict[str, Any]:
    """The options, with arguments checked and typed where a function takes them."""
    typed = ("is_concurrency_safe", "present_call", "present_result")
    return {key: _checked(value, check) if key in typed else value for key, value in options.items()}


@overload
def tool(function: Callable[..., Any], /) -> ToolDefinition: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    render: Callable[[Any, Any], Content] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], ToolDefinition]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    render: Callable[[Any, Any], Content] | None = None,
    **options: Any,
) -> Any:
    """Make a tool of a plain annotated function.

    Its name, parameters and return value become the tool's; its docstring gives the descriptions. A parameter named
    ``exec`` gets the call's context. ``options`` are those of :func:`define_tool`.
    """
    if function is None:
        return lambda function: tool_from(function, name, description, render, options)
    return tool_from(function, name, description, render, options)


def tool_from(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    render: Callable[[Any, Any], Content] | None,
    options: Mapping[str, Any],
) -> ToolDefinition:
    """The definition of an annotated function."""
    from dsh_runtime.values.signatures import returned_by, signature_of, structure_call

    signature = signature_of(function)
    convert: Callable[[Any], Any] = structure_call(function)
    check = ArgumentCheck(_compiled(signature.schema), convert)
    tool_name = name or function.__name__
    declared, unstructure = _output(returned_by(function), render, options.get("presentation_meta"), tool_name)
    wants_exec = "exec" in inspect.signature(function).parameters
    rest = {key: value for key, value in options.items() if key != "presentation_meta"}
    return ToolDefinition(
        name=tool_name,
        description=description or signature.description,
        parameters=signature.schema,
        output=declared,
        execute=_body(_by_keyword(function, wants_exec), unstructure, tool_name),
        check=check,
        **_checked_options(rest, check),
    )


def _parameters(parameters: Any) -> tuple[dict[str, Any], Callable[[JsonValue], Any] | None]:
    if isinstance(parameters, type):
        from dsh_runtime.values.annotations import schema_of
        from dsh_runtime.values.typed import structure

        return schema_of(parameters), structure(parameters)
    return parameter_spec_to_json_schema(parameters), None


def _output(
    output: Any,
    render: Callable[[Any, Any], Content] | None,
    presentation_meta: Callable[[Any, Any], JsonValue] | None,
    name: str,
) -> tuple[ToolOutput, Callable[[Any], Any] | None]:
    """The output declaration with its schema compiled, and what makes a typed value into JSON."""
    if isinstance(output, ToolOutput):
        if render is not None or presentation_meta is not None:
            text = f"tool {name!r} gives render or presentation_meta twice; keep those in ToolOutput"
            raise ToolDefinitionError(text)
        output, render, presentation_meta = output.schema, output.render, output.presentation_meta
    if output is None:
        raise ToolDefinitionError(f"tool {name!r} declares no output; give a ToolOutput, a value spec or a type")
    if isinstance(output, Mapping):
        return ToolOutput(value_spec_to_json_schema(output), render, presentation_meta), None
    from dsh_runtime.values.annotations import schema_of
    from dsh_runtime.values.typed import structure
    from dsh_runtime.values.untyped import unstructure

    schema = schema_of(output)
    back = structure(output, of_output=True)
    declared = ToolOutput(schema, _on_instance(render, back), _on_instance(presentation_meta, back))
    return declared, unstructure(output, f"what tool {name!r} returned")


def _on_instance(project: Callable[[Any, Any], Any] | None, back: Callable[[Any], Any]) -> Any:
    """A projector of a typed output gets the value as an instance again."""
    return project if project is None else lambda args, value: project(args, back(value))


def _compiled(schema: Any) -> CompiledSchema:
    return compile_schema(schema)


def _checked(function: Callable[..., Any] | None, check: ArgumentCheck) -> Callable[..., Any] | None:
    """``function`` with its first argument checked and typed like the body's."""
    if function is None or not callable(function):
        return function

    @functools.wraps(function)
    def typed(args: Any, *rest: Any) -> Any:
        violations = check.compiled.explain_arguments(args)
        if violations:
            raise ToolArgsError("; ".join(str(violation) for violation in violations), violations)
        return function(check.convert(args) if check.convert is not None else args, *rest)

    return typed


def _body(execute: Callable[..., Any], unstructure: Callable[[Any], Any] | None, name: str) -> Callable[..., Any]:
    """``execute`` as ``(args, exec)``, giving JSON."""
    if not callable(execute):
        raise ToolDefinitionError(f"tool {name!r} has an execute that is no function: {execute!r}")
    body = execute if _takes_exec(execute, name) else _without_exec(execute)
    return body if unstructure is None else _unstructured(body, unstructure)


def _takes_exec(execute: Callable[..., Any], name: str) -> bool:
    signature = inspect.signature(execute)
    for count in (2, 1):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == 2
    raise ToolDefinitionError(f"tool {name!r} has execute{signature}; define execute(args, exec) or execute(args)")


def _without_exec(execute: Callable[..., Any]) -> Callable[..., Any]:
    if is_async(execute):

        async def body(args: Any, exec: Any) -> Any:
            return await execute(args)

        return body
    return lambda args, exec: execute(args)  # noqa: A006


def _by_keyword(function: Callable[..., Any], wants_exec: bool) -> Callable[..., Any]:
    if is_async(function):

        async def body(args: Any, exec: Any) -> Any:
            return await (function(**args, exec=exec) if wants_exec else function(**args))

        return body
    return lambda args, exec: function(**args, exec=exec) if wants_exec else function(**args)  # noqa: A006


def _unstructured(body: Callable[..., Any], unstructure: Callable[[Any], Any]) -> Callable[..., Any]:
    if is_async(body):

        async def typed(args: Any, exec: Any) -> Any:
            return unstructure(await body(args, exec))

        return typed
    return lambda args, exec: unstructure(body(args, exec))  # noqa: A006
