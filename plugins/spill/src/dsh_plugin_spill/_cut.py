"""Pure functions that cut texts to a number of bytes, never within a character."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

#: Of the room beside the note, the beginning of a text gets two thirds.
_HEAD: Final = 2 / 3


def size_of(text: str) -> int:
    """The bytes that a text takes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def prefix(data: bytes, most: int) -> bytes:
    """The longest beginning of UTF-8 that has at most so many bytes and ends with a whole character."""
    if most >= len(data):
        return data
    end = max(0, most)
    while end and _continues(data[end]):
        end -= 1
    return data[:end]


def suffix(data: bytes, most: int) -> bytes:
    """The longest end of UTF-8 that has at most so many bytes and begins with a whole character."""
    start = max(0, len(data) - max(0, most))
    while start < len(data) and _continues(data[start]):
        start += 1
    return data[start:]


def cut(text: str, most: int, note: Callable[[int], str]) -> str:
    """The beginning and the end of a text with ``note(bytes left out)`` between them, in at most ``most`` bytes.

    A larger number makes no shorter note.
    """
    data = text.encode()
    room = max(0, most - size_of(note(len(data))))
    head = prefix(data, round(room * _HEAD))
    tail = suffix(data[len(head) :], room - len(head))
    return f"{head.decode()}{note(len(data) - len(head) - len(tail))}{tail.decode()}"


def shares(sizes: Sequence[int], budget: int) -> list[int]:
    """What each of several sizes gets of a budget: what is small stays whole, the rest is shared evenly."""
    granted = [0] * len(sizes)
    left = budget
    smallest_first = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for number, index in enumerate(smallest_first):
        granted[index] = min(sizes[index], left // (len(sizes) - number))
        left -= granted[index]
    return granted


def _continues(byte: int) -> bool:
    """Whether a byte goes on with a character that began before it."""
    return byte & 0xC0 == 0x80
