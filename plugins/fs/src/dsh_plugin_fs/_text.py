"""Text as files hold it: UTF-8 with or without a byte order mark, lines that end in LF or CRLF."""

from __future__ import annotations

import codecs
import os
from typing import Literal, TypeAlias

from attrs import frozen

from dsh_plugin_fs._errors import FsError

BOM = codecs.BOM_UTF8
#: How much of a file decides whether it is binary.
HEAD_BYTES = 8_192

LineEndings: TypeAlias = Literal["lf", "crlf", "mixed", "none"]


@frozen
class Text:
    """What a file says, with its line endings as they are, and whether a byte order mark stood in front."""

    text: str
    bom: bool = False

    def encode(self) -> bytes:
        """Return the bytes of the file."""
        return (BOM if self.bom else b"") + self.text.encode()


def decode(data: bytes, shown: str) -> Text:
    """Decode a whole file, or say where it is no UTF-8."""
    check_not_binary(data[:HEAD_BYTES], len(data), shown)
    bom = data.startswith(BOM)
    return Text(decode_part(data[len(BOM) if bom else 0 :], len(BOM) if bom else 0, shown), bom)


def decode_part(data: bytes, start: int, shown: str) -> str:
    """Decode bytes that begin at ``start`` in the file, or say where they are no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        at = start + error.start
        message = f"'{shown}' is no UTF-8 text: byte {at} (0x{data[error.start]:02x}) does not fit"
        raise FsError("FS_NOT_UTF8", message) from error


def check_encodable(text: str, subject: str) -> None:
    """Refuse lone surrogates, which no UTF-8 file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        rule = f"character {error.start} of {subject} is half of a surrogate pair; UTF-8 cannot hold it"
        raise FsError("FS_NOT_UTF8", rule) from error


def check_not_binary(head: bytes, size: int, shown: str) -> None:
    """Name a binary file as such; ``head`` is its beginning, ``size`` the size of all of it."""
    reason = binary_reason(head, is_whole=len(head) >= size)
    if reason:
        message = f"'{shown}' is a binary file of {size:,} bytes ({reason}); only UTF-8 text can be used here"
        raise FsError("FS_IS_BINARY", message)


def binary_reason(head: bytes, *, is_whole: bool) -> str | None:
    """Say why a file that begins with ``head`` is binary, or ``None`` if it looks like UTF-8 text."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "its byte order mark says UTF-16"
    nul = head.find(b"\0")
    if nul >= 0:
        return f"byte {nul} is NUL"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=is_whole)
    except UnicodeDecodeError as error:
        return f"byte {error.start} is no UTF-8"
    return None


def line_endings(text: str) -> LineEndings:
    """Say how the lines of ``text`` end."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    if crlf and lf:
        return "mixed"
    return "crlf" if crlf else "lf" if lf else "none"


def with_endings(text: str, endings: LineEndings) -> str:
    """Give every line of ``text`` the ending ``endings``; ``mixed`` and ``none`` leave it as it is."""
    if endings in ("mixed", "none"):
        return text
    plain = text.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if endings == "crlf" else plain


def read_up_to(file: int, size: int) -> bytes:
    """Read the first ``size`` bytes of an open file, or what it has by now."""
    data = bytearray()
    while len(data) < size and (block := os.pread(file, size - len(data), len(data))):
        data += block
    return bytes(data)
