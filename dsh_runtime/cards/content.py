"""Content blocks as rows: texts as they are; images, audio and the rest as a note with type and size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsh_runtime.cards.lines import counted, text_rows
from dsh_runtime.cards.model import Row, Span


def content_rows(content: Any) -> Iterator[Row]:
    """The rows of all blocks; what is no block is left out."""
    blocks = content if isinstance(content, (list, tuple)) else ()
    for block in blocks:
        if isinstance(block, Mapping):
            yield from _block_rows(block)


def _block_rows(block: Mapping[str, Any]) -> Iterator[Row]:
    kind, text = block.get("type"), block.get("text")
    if kind == "text" and isinstance(text, str):
        yield from text_rows(text)
        return
    inner = block.get("resource")
    resource = inner if isinstance(inner, Mapping) else block
    yield Row((Span(f"[{', '.join(_facts(str(kind), resource))}]", "note"),))
    if isinstance(resource.get("text"), str):
        yield from text_rows(resource["text"], indent="  ")


def _facts(kind: str, block: Mapping[str, Any]) -> Iterator[str]:
    yield kind
    for name in ("mimeType", "name", "uri"):
        if isinstance(block.get(name), str):
            yield block[name]
    for name in ("data", "blob"):
        if isinstance(block.get(name), str):
            yield counted(_decoded_size(block[name]), "byte")


def _decoded_size(base64: str) -> int:
    """How many bytes a text in base64 stands for."""
    padding = len(base64[-2:]) - len(base64[-2:].rstrip("="))
    return max(0, len(base64) * 3 // 4 - padding)
