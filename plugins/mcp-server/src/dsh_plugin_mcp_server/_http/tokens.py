"""The file of tokens: hashes, each with a name and rights. It is read anew when it has changed, so that a token can be
revoked while the server runs.

    [[token]]
    name = "ci"
    hash = "sha256:5c29…"
    rights = ["list", "call"]

A token is random and long, so a plain SHA-256 of it tells nobody what it is.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen
from dsh_hookspecs import HarnessError

RIGHTS: Final = frozenset({"list", "call"})
#: A token that is longer is none.
_LONGEST: Final = 512
_MOST_BYTES: Final = 4_194_304
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class TokenFileError(HarnessError):
    """The file of tokens cannot be used."""

    default_code = "TOKENS_UNAVAILABLE"


@frozen
class Token:
    """Who somebody is, and what they may do."""

    name: str
    rights: frozenset[str]
    hash: str


def hash_of(secret: str) -> str:
    """How a token stands in the file."""
    return f"sha256:{hashlib.sha256(secret.encode()).hexdigest()}"


def new_secret() -> str:
    """A token that nobody can guess."""
    return f"dsh_{secrets.token_urlsafe(32)}"


def parse_tokens(text: str) -> dict[str, Token]:
    """The tokens of a file by their hashes; :class:`TokenFileError` names what is wrong with it."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TokenFileError(f"is no TOML: {error}") from error
    rows = document.get("token", [])
    if set(document) - {"token"} or not isinstance(rows, list):
        raise TokenFileError("has something other than [[token]] tables")
    found: dict[str, Token] = {}
    names: set[str] = set()
    for number, row in enumerate(rows, 1):
        token = _token(row, f"[[token]] number {number}")
        if token.name in names or token.hash in found:
            raise TokenFileError(f"has {token.name!r} twice, as name or as hash")
        names.add(token.name)
        found[token.hash] = token
    return found


def _token(row: Any, subject: str) -> Token:
    if not isinstance(row, Mapping) or set(row) - {"name", "hash", "rights"}:
        raise TokenFileError(f"has in {subject} other keys than name, hash and rights")
    name, digest, rights = row.get("name"), row.get("hash"), row.get("rights", sorted(RIGHTS))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TokenFileError(f"has in {subject} no name of up to 64 letters, digits, '.', '_' and '-'")
    if not isinstance(digest, str) or not _HASH.fullmatch(digest):
        raise TokenFileError(f"has for {name!r} no hash like 'sha256:<64 hex digits>'")
    if not isinstance(rights, list) or not all(isinstance(each, str) and each in RIGHTS for each in rights):
        raise TokenFileError(f"gives {name!r} rights other than {', '.join(sorted(RIGHTS))}")
    return Token(name, frozenset(rights), digest)


@define
class TokenFile:
    """The tokens that count now. A file that has become unusable lets nobody in."""

    path: Path
    _stamp: tuple[int, int, int] | None = field(default=None, init=False)
    _tokens: dict[str, Token] = field(factory=dict, init=False)

    def read(self) -> None:
        """Read the file if it has changed; :class:`TokenFileError` if it cannot be used."""
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
            if stamp == self._stamp:
                return
            self._stamp, self._tokens = None, {}
            if status.st_size > _MOST_BYTES:
                raise TokenFileError(f"is larger than {_MOST_BYTES:,} bytes")
            self._tokens = parse_tokens(self.path.read_text("utf-8"))
            self._stamp = stamp
        except (OSError, UnicodeDecodeError) as error:
            self._stamp, self._tokens = None, {}
            raise TokenFileError(f"the tokens in {str(self.path)!r} cannot be read: {error}") from error
        except TokenFileError as error:
            raise TokenFileError(f"the file of tokens {str(self.path)!r} {error}") from error

    def find(self, secret: str) -> Token | None:
        """Whose token this is; ``None``: nobody's. Raises like :meth:`read`."""
        self.read()
        if not secret or len(secret) > _LONGEST:
            return None
        return self._tokens.get(hash_of(secret))

    def holds(self, token: Token) -> bool:
        """Whether a token still counts as it is."""
        return self._tokens.get(token.hash) == token


def add_token(path: Path, name: str, rights: list[str]) -> str:
    """Put a new token into the file, which is made if it is not there; give back the secret, which is kept nowhere."""
    text = path.read_text("utf-8") if path.exists() else ""
    secret = new_secret()
    listed = ", ".join(f'"{right}"' for right in rights)
    row = f'[[token]]\nname = "{name}"\nhash = "{hash_of(secret)}"\nrights = [{listed}]\n'
    text = f"{text}\n{row}" if text else row
    parse_tokens(text)
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, path)
    return secret
