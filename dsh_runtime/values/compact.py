"""JSON texts without blanks, from encoders that are made once.

``json.JSONEncoder`` makes its inner encoder anew for each value, which is half of the cost of a small one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from json import encoder
from typing import Any


def dump(value: Any) -> str:
    """The text of a value; what UTF-8 cannot carry (lone surrogates) is escaped, what is no JSON reads as its repr."""
    text = _plain()(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return _encoder(True, False)(value)
    return text


def dump_canonical(value: Any) -> str:
    """The text of a value that is the same whatever the order of keys, and has no characters beside ASCII."""
    return _canonical()(value)


@cache
def _plain() -> Callable[[Any], str]:
    return _encoder(False, False)


@cache
def _canonical() -> Callable[[Any], str]:
    return _encoder(True, True)


def _encoder(ascii_only: bool, sort_keys: bool) -> Callable[[Any], str]:
    encode_string = encoder.encode_basestring_ascii if ascii_only else encoder.encode_basestring
    make: Any = getattr(encoder, "c_make_encoder", None)
    try:
        inner = make(None, repr, encode_string, None, ":", ",", sort_keys, False, True)
    except TypeError:  # an interpreter without it, or one in which it takes other arguments
        options: Any = {"ensure_ascii": ascii_only, "sort_keys": sort_keys, "default": repr}
        return json.JSONEncoder(separators=(",", ":"), check_circular=False, **options).encode
    return lambda value: "".join(inner(value, 0))
