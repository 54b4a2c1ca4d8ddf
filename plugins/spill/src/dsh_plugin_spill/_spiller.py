"""Content cut to a budget, with what is left out in the store.

All text blocks of a content share the budget. What is small stays whole; a text that is cut is stored first, so that
its note can say where it is. Storing is best effort: a text that cannot be stored is cut all the same, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import trio
from attrs import frozen
from dsh_hookspecs import Content, ContentBlock

from dsh_plugin_spill._cut import cut, prefix, shares, size_of
from dsh_plugin_spill._store import SpillError, Store

#: A text that is cut needs so many bytes, so that its note fits in.
SMALLEST_SHARE: Final = 320
_LONGEST_REASON: Final = 100
#: Looking through so many characters takes a few milliseconds.
_LARGE: Final = 100_000


@frozen
class Spiller:
    """Cuts content. ``mask`` is applied to what is stored and shown of a content that is too large."""

    store: Store
    budget: int
    block_budget: int
    patience: float
    readable: bool
    mask: Callable[[str], str]

    def fits(self, content: Content) -> bool:
        """A quick look that clears most contents: whether they are texts, and small whatever they are made of."""
        size = 0
        for block in content:
            text = block.get("text")
            if type(text) is not str or block["type"] != "text":
                return False
            size += len(text) if text.isascii() else 4 * len(text)
        return size <= self.budget

    async def content(self, content: Content, call_id: str) -> Content:
        """``content`` within the budget; the very same content if it is."""
        bounded = [self._bounded(block) for block in content]
        if sum(size_of(block["text"]) for block in bounded if _is_text(block)) > self.budget:
            return await self._cut_blocks(bounded, call_id)
        return content if all(a is b for a, b in zip(bounded, content, strict=True)) else bounded

    async def feedback(self, text: str, call_id: str) -> str:
        """A policy's feedback within the budget, with room for what the host writes in front of it."""
        most = self.budget - len("Error: ")
        return text if size_of(text) <= most else await self._cut(await self._masked(text), most, call_id)

    def _bounded(self, block: ContentBlock) -> ContentBlock:
        """A block that is no text, or a note in place of one that is too large."""
        if _is_text(block):
            return block
        size = _size_of_value(block)
        if size <= self.block_budget:
            return block
        kind = str(block["type"])[:40]
        note = f"[a block of type {kind} with {size} bytes is left out: at most {self.block_budget} are passed on]"
        return {"type": "text", "text": note}

    async def _cut_blocks(self, blocks: Sequence[ContentBlock], call_id: str) -> Content:
        blocks = [
            {**block, "text": await self._masked(block["text"])} if _is_text(block) else block for block in blocks
        ]
        sizes = [size_of(block["text"]) for block in blocks if _is_text(block)]
        granted = shares(sizes, self.budget)
        if any(share < min(size, SMALLEST_SHARE) for share, size in zip(granted, sizes, strict=True)):
            blocks, granted = _joined(blocks), [self.budget]
        left = iter(granted)
        cut_blocks: list[ContentBlock] = []
        for block in blocks:
            if _is_text(block):
                block = {**block, "text": await self._cut(block["text"], next(left), call_id)}
            cut_blocks.append(block)
        return cut_blocks

    async def _masked(self, text: str) -> str:
        """A text without its secrets. One that takes a while to look through does so beside the event loop."""
        if len(text) < _LARGE:
            return self.mask(text)
        return await trio.to_thread.run_sync(self.mask, text, abandon_on_cancel=True)

    async def _cut(self, text: str, share: int, call_id: str) -> str:
        size = size_of(text)
        if size <= share:
            return text
        where = await self._stored(text, call_id)
        return cut(text, share, lambda left: f"\n[{left} of {size} bytes are left out here; {where}]\n")

    async def _stored(self, text: str, call_id: str) -> str:
        """Store a text; say where it is, or why it is not."""
        locator, why = None, "the store took too long"
        with trio.move_on_after(self.patience):
            try:
                locator = await trio.to_thread.run_sync(self.store.put, text, call_id, abandon_on_cancel=True)
            except (OSError, SpillError) as error:
                why = getattr(error, "strerror", None) or str(error)
        if locator is None:
            return f"they could not be stored: {prefix(why.encode(), _LONGEST_REASON).decode()}"
        return f"all of it is {locator}" + (", to be read with spill_read" if self.readable else "")


def _is_text(block: ContentBlock) -> bool:
    return block["type"] == "text" and isinstance(block.get("text"), str)


def _joined(blocks: Sequence[ContentBlock]) -> list[ContentBlock]:
    """The blocks with all texts in one, where the first of them stood."""
    text = "\n".join(block["text"] for block in blocks if _is_text(block))
    first = next(index for index, block in enumerate(blocks) if _is_text(block))
    rest = (block for block in blocks[first:] if not _is_text(block))
    return [*blocks[:first], {**blocks[first], "text": text}, *rest]


def _size_of_value(value: Any) -> int:
    """About the bytes that a JSON value takes; texts count exactly."""
    if isinstance(value, str):
        return size_of(value)
    if isinstance(value, Mapping):
        return sum(size_of(key) + _size_of_value(item) for key, item in value.items())
    if isinstance(value, Sequence):
        return sum(map(_size_of_value, value))
    return len(str(value))
