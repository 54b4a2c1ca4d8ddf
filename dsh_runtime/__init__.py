"""dsh-runtime: hosts the tools of AI agents behind one governed pipeline.

Layering, lowest first: ``core`` and ``values``; ``tools``; ``cards``; ``services``; ``loader``; ``cli``.

The names below are loaded when they are first used: importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsh_hookspecs import (
        AbortController,
        AbortSignal,
        Accept,
        Allow,
        Ask,
        Block,
        ContextMessage,
        Deny,
        HarnessError,
        JsonSchemaError,
        JsonValueError,
        ToolArgsError,
        ToolErrorInfo,
        ToolExecutionFailure,
        ToolExecutionSuccess,
        ToolFailedError,
        ToolFailure,
        ToolNotFoundError,
        ToolOutputError,
        ToolRunContext,
        Violation,
        hookimpl,
        hookspec,
    )

    from dsh_runtime.code_mode.interface import (
        CodeFailure,
        CodeOutcome,
        CodeProgram,
        CodeRuntime,
        SubError,
        SubReply,
    )
    from dsh_runtime.core.context import Context, Scope
    from dsh_runtime.core.errors import (
        ClashError,
        DeadlockError,
        DisposedError,
        HookError,
        PluginError,
        ScopeClosedError,
        ScopeError,
        ServiceError,
    )
    from dsh_runtime.core.fiber import Fiber
    from dsh_runtime.core.lifecycle import State
    from dsh_runtime.core.scopes import ScopeKey
    from dsh_runtime.core.services import Service
    from dsh_runtime.loader.errors import ConfigError, LoaderError
    from dsh_runtime.loader.host import Host, HostError, open_host
    from dsh_runtime.services.approval.describe import RequestText, describe_request
    from dsh_runtime.services.approval.desk import PendingApproval
    from dsh_runtime.services.approval.race import first_answer
    from dsh_runtime.services.approval.service import ApprovalError
    from dsh_runtime.tools.define import define_tool, tool
    from dsh_runtime.tools.definition import ToolDefinition, ToolExecutionInput, ToolOutput, ToolReply
    from dsh_runtime.tools.presentation import DurableResult, present_call, present_result
    from dsh_runtime.tools.registry import ToolRegistrationError
    from dsh_runtime.tools.runtime import ToolRuntime
    from dsh_runtime.values import (
        assert_object_json_schema,
        assert_supported_json_schema,
        parameter_spec_to_json_schema,
        snapshot_json,
        thaw,
        validate_args,
        validate_json_schema_value,
        value_spec_to_json_schema,
    )

_HOMES = {
    "dsh_hookspecs": (
        "Accept Allow AbortController AbortSignal Ask Block ContextMessage Deny HarnessError JsonSchemaError "
        "JsonValueError ToolArgsError ToolErrorInfo ToolExecutionFailure ToolExecutionSuccess ToolFailedError "
        "ToolFailure ToolNotFoundError ToolOutputError ToolRunContext Violation hookimpl hookspec"
    ),
    "dsh_runtime.code_mode.interface": "CodeFailure CodeOutcome CodeProgram CodeRuntime SubError SubReply",
    "dsh_runtime.core.context": "Context Scope",
    "dsh_runtime.core.errors": (
        "ClashError DeadlockError DisposedError HookError PluginError ScopeClosedError ScopeError ServiceError"
    ),
    "dsh_runtime.core.fiber": "Fiber",
    "dsh_runtime.core.lifecycle": "State",
    "dsh_runtime.core.scopes": "ScopeKey",
    "dsh_runtime.core.services": "Service",
    "dsh_runtime.loader.errors": "ConfigError LoaderError",
    "dsh_runtime.loader.host": "Host HostError open_host",
    "dsh_runtime.services.approval.service": "ApprovalError",
    "dsh_runtime.services.approval.describe": "RequestText describe_request",
    "dsh_runtime.services.approval.desk": "PendingApproval",
    "dsh_runtime.services.approval.race": "first_answer",
    "dsh_runtime.tools.define": "define_tool tool",
    "dsh_runtime.tools.definition": "ToolDefinition ToolExecutionInput ToolOutput ToolReply",
    "dsh_runtime.tools.presentation": "DurableResult present_call present_result",
    "dsh_runtime.tools.registry": "ToolRegistrationError",
    "dsh_runtime.tools.runtime": "ToolRuntime",
    "dsh_runtime.values": (
        "assert_object_json_schema assert_supported_json_schema parameter_spec_to_json_schema snapshot_json thaw "
        "validate_args validate_json_schema_value value_spec_to_json_schema"
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__version__ = "0.1.0"

__all__ = [
    "AbortController",
    "AbortSignal",
    "Accept",
    "Allow",
    "ApprovalError",
    "Ask",
    "Block",
    "ClashError",
    "CodeFailure",
    "CodeOutcome",
    "CodeProgram",
    "CodeRuntime",
    "ConfigError",
    "Context",
    "ContextMessage",
    "DeadlockError",
    "Deny",
    "DisposedError",
    "DurableResult",
    "Fiber",
    "HarnessError",
    "HookError",
    "Host",
    "HostError",
    "JsonSchemaError",
    "JsonValueError",
    "LoaderError",
    "PendingApproval",
    "PluginError",
    "RequestText",
    "Scope",
    "ScopeClosedError",
    "ScopeError",
    "ScopeKey",
    "Service",
    "ServiceError",
    "State",
    "SubError",
    "SubReply",
    "ToolArgsError",
    "ToolDefinition",
    "ToolErrorInfo",
    "ToolExecutionFailure",
    "ToolExecutionInput",
    "ToolExecutionSuccess",
    "ToolFailedError",
    "ToolFailure",
    "ToolNotFoundError",
    "ToolOutput",
    "ToolOutputError",
    "ToolRegistrationError",
    "ToolReply",
    "ToolRunContext",
    "ToolRuntime",
    "Violation",
    "assert_object_json_schema",
    "assert_supported_json_schema",
    "define_tool",
    "describe_request",
    "first_answer",
    "hookimpl",
    "hookspec",
    "open_host",
    "parameter_spec_to_json_schema",
    "present_call",
    "present_result",
    "snapshot_json",
    "thaw",
    "tool",
    "validate_args",
    "validate_json_schema_value",
    "value_spec_to_json_schema",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'dsh_runtime' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
