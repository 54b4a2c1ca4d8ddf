"""Which names stand for a secret: ``password``, ``apiKey``, ``DB_PASSWORD_2``, ``x-auth-token``.

Strategy: a name is cut into words (at separators, at the humps of camelCase, before digits). It names a secret if one
of its words does, or if its letters hold a compound that no other word holds, unless it ends in a word that makes it a
description of the secret (``token_count``, ``password_policy``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import Enum
from functools import cache, lru_cache
from typing import Final

from dsh_plugin_redact._mask import mask_pattern

#: Words that make a name secret wherever they stand in it.
_WORDS: Final = frozenset(
    (
        "pwd", "passwd", "passphrase", "passcode", "password", "passwords", "secret", "secrets", "token", "cookie",
        "cookies", "authorization", "credential", "credentials", "apikey", "apikeys", "bearer", "jwt",
    )
)
#: Words that make it secret for texts alone: ``max_tokens`` is a number.
_TEXT_WORDS: Final = frozenset(["tokens"])
#: The same, unless they stand alone: ``DB_PASS``, but not ``PASS``.
_TEXT_PARTS: Final = frozenset(["pass", "otp"])
#: Ends of words that make a name secret: ``mysecret``.
_ENDS: Final = ("secret", "token", "cookie", "pwd")
#: Compounds, found in the letters of a name whatever separates them.
_COMPOUNDS: Final = (
    "password", "passwd", "passphrase", "passcode", "apikey", "apitoken", "apisecret", "accesskey", "accesstoken",
    "secretkey", "secretaccess", "privatekey", "signingkey", "encryptionkey", "masterkey", "accountkey", "sharedkey",
    "sshkey", "authkey", "authtoken", "refreshtoken", "idtoken", "sessionid", "sessiontoken", "sessionkey",
    "clientsecret", "sharedaccess", "connectionstring", "credential", "authorization", "setcookie",
)
#: Last words that make a name a description.
_DESCRIPTIONS: Final = frozenset(
    (
        "count", "counts", "limit", "limits", "type", "types", "url", "urls", "uri", "uris", "endpoint", "endpoints",
        "expiry", "expires", "expiration", "policy", "policies", "length", "len", "size", "max", "min", "ttl", "age",
        "usage", "used", "budget", "name", "names", "path", "file", "prompt", "hint", "label", "title", "description",
        "required", "enabled", "field", "column", "at", "in",
    )
)


class Secrecy(Enum):
    """What of the values under a name is secret: nothing, texts, texts and numbers."""

    NONE = 0
    TEXT = 1
    ALL = 2


class KeyNames:
    """Tells secret names from others; ``own`` are more words or compounds, compared without case and separators."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = tuple(filter(None, (letters(name) for name in own)))
        self.secrecy = lru_cache(maxsize=4096)(self._secrecy)

    def _secrecy(self, name: str) -> Secrecy:
        """How secret the values under ``name`` are."""
        plain = mask_pattern().sub(" ", unicodedata.normalize("NFKC", name))
        compact = letters(plain)
        if any(own in compact for own in self._own):
            return Secrecy.ALL
        words = [word.lower() for word in _word_pattern().findall(plain)]
        if not words or words[-1] in _DESCRIPTIONS:
            return Secrecy.NONE
        if not _WORDS.isdisjoint(words) or any(word.endswith(_ENDS) for word in words):
            return Secrecy.ALL
        if any(compound in compact for compound in _COMPOUNDS):
            return Secrecy.ALL
        is_text = not _TEXT_WORDS.isdisjoint(words) or (len(words) > 1 and not _TEXT_PARTS.isdisjoint(words))
        return Secrecy.TEXT if is_text else Secrecy.NONE


@cache
def _word_pattern() -> re.Pattern[str]:
    return re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", re.ASCII)


def letters(name: str) -> str:
    """The letters of a name in lower case, whatever separates them."""
    return "".join(filter(str.isalpha, name)).lower()
