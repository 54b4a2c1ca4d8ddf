"""Lossless JSON, the enforced schema subset, the author's DSL and typed tools.

Layering, lowest first: ``frozen``, ``paths``, ``literals``, ``compact``; ``survey``, ``branches``; ``snapshot``,
``subset``; ``walk``, ``codegen``; ``compiled``, ``dsl``; ``members``; ``docstrings``; ``fields``; ``annotations``;
``typed``; ``untyped``, ``signatures``.
"""

from __future__ import annotations

from dsh_runtime.values.annotations import schema_of
from dsh_runtime.values.codegen import Mismatch
from dsh_runtime.values.compiled import CompiledSchema, compile_schema
from dsh_runtime.values.docstrings import Docstring, parse_docstring
from dsh_runtime.values.dsl import parameter_spec_to_json_schema, validate_args, value_spec_to_json_schema
from dsh_runtime.values.frozen import FrozenDict, FrozenList, thaw
from dsh_runtime.values.signatures import FunctionSignature, signature_of, structure_call
from dsh_runtime.values.snapshot import snapshot_json
from dsh_runtime.values.subset import assert_object_json_schema, assert_supported_json_schema
from dsh_runtime.values.typed import structure
from dsh_runtime.values.untyped import unstructure
from dsh_runtime.values.walk import validate_json_schema_value

__all__ = [
    "CompiledSchema",
    "Docstring",
    "FrozenDict",
    "FrozenList",
    "FunctionSignature",
    "Mismatch",
    "assert_object_json_schema",
    "assert_supported_json_schema",
    "compile_schema",
    "parameter_spec_to_json_schema",
    "parse_docstring",
    "schema_of",
    "signature_of",
    "snapshot_json",
    "structure",
    "structure_call",
    "thaw",
    "unstructure",
    "validate_args",
    "validate_json_schema_value",
    "value_spec_to_json_schema",
]
