"""The forms of a value that globs are held against.

A value can be read as text, or as the name of a file. A text has one form: itself. The name of a file has several,
since different systems take different texts for the same file, and a gate cannot know which system will open it.

*Exact* forms keep upper and lower case: the text itself; its normal form (``.``, ``..``, doubled and trailing slashes
resolved); that with ``\\`` as a separator too; and that the Windows way, where a component ends before its trailing
dots and spaces and before a ``:``. *Folded* forms are the same again after Unicode's compatibility folding: full-width
letters, ligatures and upper case are levelled, ignorable characters and outer spaces go. What stands before a NUL has
all of these forms as well.
"""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

from dsh_hookspecs import JsonValue

#: A name without any of these, and without the ends below, is its own normal form on every system.
_ODD_PARTS: Final = ("/.", "./", "//", "\\", ":", " /")
_ODD_ENDS: Final = ("/", ".", " ")
#: The same for what Windows alone reads in another way.
_WINDOWS_PARTS: Final = ("./", ":", " /")
_WINDOWS_ENDS: Final = (".", " ")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
#: Unicode's Default_Ignorable_Code_Point.
_IGNORABLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def text_forms(value: JsonValue) -> Sequence[str]:
    """A string itself; anything else as JSON text, and a whole float also as the integer that it equals."""
    if isinstance(value, str):
        return (value,)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    if isinstance(value, float) and value.is_integer():
        return (text, str(int(value)))
    return (text,)


def path_forms(value: JsonValue) -> tuple[Sequence[str], Sequence[str]]:
    """The exact and the folded forms of a file's name; a value that is no string has its JSON text alone."""
    if not isinstance(value, str):
        return text_forms(value), ()
    exact, level = _normal_forms(value), fold(value)
    folded = exact if level == value else _normal_forms(level)
    if "\0" not in value:
        return exact, folded
    exact_before, folded_before = path_forms(value.partition("\0")[0])
    return (*exact, *exact_before), (*folded, *folded_before)


def fold(name: str) -> str:
    """Level what systems that ignore case, width or invisible characters take for the same name."""
    if name.isascii():
        return name.lower().strip()
    visible = _IGNORABLE.sub("", unicodedata.normalize("NFKC", name))
    return unicodedata.normalize("NFKC", visible.casefold()).strip()


def posix_normal(name: str) -> str:
    """A name without ``.``, ``..`` where they can be resolved, doubled and trailing slashes; ``.`` for nothing left."""
    normal = posixpath.normpath(name) if name else name
    return normal[1:] if normal.startswith("//") else normal


def _normal_forms(name: str) -> Sequence[str]:
    if not (_has(name, _ODD_PARTS) or name.endswith(_ODD_ENDS)):
        return (name,)
    slashes = name.replace("\\", "/")
    forms = {name, posix_normal(name), posix_normal(slashes)}
    if _has(slashes, _WINDOWS_PARTS) or slashes.endswith(_WINDOWS_ENDS):
        forms.add(_windows_normal(slashes))
    return tuple(forms)


def _has(name: str, parts: Sequence[str]) -> bool:
    for part in parts:  # noqa: SIM110 - a generator would double the cost of every call
        if part in name:
            return True
    return False


def _windows_normal(slashes: str) -> str:
    drive = _DRIVE.match(slashes)
    rooted = f"{drive[0]}/{slashes[2:]}" if drive else slashes
    return posix_normal("/".join(map(_windows_component, rooted.split("/"))))


def _windows_component(part: str) -> str:
    part = part.rstrip(" ")
    if part in (".", "..") or _DRIVE.fullmatch(part):
        return part
    return part.partition(":")[0].rstrip(". ")


def _plain(value: object) -> object:
    """Give the JSON printer dicts and lists for whatever else reads like them."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"arguments are JSON values, not {type(value).__name__}")
