"""Lossless JSON, the enforced schema subset, the author's DSL and typed tools.

Layering, lowest first: ``frozen``, ``paths``, ``literals``; ``survey``; ``snapshot``, ``subset``; ``walk``,
``codegen``; ``compiled``, ``dsl``; ``docstrings``, ``typed``, ``signatures``.
"""

from __future__ import annotations

from dsh_runtime.values.codegen import Mismatch
from dsh_runtime.values.compiled import CompiledSchema, compile_schema
from dsh_runtime.values.dsl import parameter_spec_to_json_schema, validate_args, value_spec_to_json_schema
from dsh_runtime.values.frozen import FrozenDict, FrozenList, thaw
from dsh_runtime.values.snapshot import snapshot_json
from dsh_runtime.values.subset import assert_object_json_schema, assert_supported_json_schema
from dsh_runtime.values.walk import validate_json_schema_value

__all__ = [
    "CompiledSchema",
    "FrozenDict",
    "FrozenList",
    "Mismatch",
    "assert_object_json_schema",
    "assert_supported_json_schema",
    "compile_schema",
    "parameter_spec_to_json_schema",
    "snapshot_json",
    "thaw",
    "validate_args",
    "validate_json_schema_value",
    "value_spec_to_json_schema",
]
