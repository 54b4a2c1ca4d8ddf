"""What a server's tools looked like when they were accepted: on first use, or by a person.

One file holds the fingerprints of all servers of a user, or of a host: a digest of each tool's description and schemas,
and the texts themselves, so that a change can be shown. It is written whole or not at all, under a lock. What cannot be
read is an error: then nothing of the server is offered.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from dsh_hookspecs import HarnessError

_VERSION: Final = 1
#: What of an entry is looked at. Titles and icons are for a person's eyes alone.
_PARTS: Final = ("name", "description", "inputSchema", "outputSchema", "annotations")
_MOST: Final = 268_435_456
_MOST_OF_A_SERVER: Final = 33_554_432


class FingerprintError(HarnessError):
    """The file of fingerprints cannot be read or written."""

    default_code = "FINGERPRINTS_UNAVAILABLE"


def default_path() -> Path:
    """The fingerprints of this user."""
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return folder / "dsh" / "fingerprints.json"


def book_path(path: str | None) -> Path:
    """Where the fingerprints are that a config names."""
    return Path(path).expanduser() if path is not None else default_path()


def server_key(server_id: str, command: tuple[str, ...] | None, url: str | None) -> str:
    """What a server goes by in the file: its id and a digest of where it is, which may hold secrets."""
    place = json.dumps([command, url]).encode()
    return f"{server_id}:{hashlib.sha256(place).hexdigest()[:16]}"


def shown(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an entry that is fingerprinted."""
    return {key: entry[key] for key in _PARTS if key in entry}


def digest_of(entry: Mapping[str, Any]) -> str:
    """The fingerprint: SHA-256, in hex, independent of the order of keys."""
    text = json.dumps(shown(entry), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@frozen
class Change:
    """A tool that has changed since it was accepted."""

    server: str
    tool: str
    accepted: dict[str, Any]
    pending: dict[str, Any]


class Book:
    """The file. Everything here blocks."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def changes(self) -> list[Change]:
        """Every tool that is withheld, by server and name."""
        servers = self._read()["servers"]
        return [
            Change(server, tool, record["accepted"], record["pending"])
            for server in sorted(servers)
            for tool, record in sorted(servers[server].items())
            if "pending" in record
        ]

    def accept(self, changes: list[Change]) -> None:
        """Take the pending form of tools for the accepted one; one that has changed again meanwhile stays withheld."""
        with self._locked() as book:
            for change in changes:
                record = book["servers"].get(change.server, {}).get(change.tool)
                if record is None or record.get("pending") != change.pending:
                    raise FingerprintError(
                        f"tool {change.tool!r} of {change.server.partition(':')[0]!r} has changed again meanwhile; "
                        "look at it once more"
                    )
                book["servers"][change.server][change.tool] = {"accepted": record["pending"]}

    def admit(self, server: str, entries: list[Mapping[str, Any]]) -> tuple[dict[str, str], bool]:
        """The digests of the tools that may be offered, by name, and whether any is withheld.

        What is new is accepted. What differs from its accepted form is noted and withheld, until it is accepted or is
        as it was.
        """
        admitted: dict[str, str] = {}
        known = self._read()["servers"].get(server, {})
        if all(_settled(known.get(entry["name"]), entry) for entry in entries):
            return {entry["name"]: digest_of(entry) for entry in entries}, False
        with self._locked() as book:
            records = book["servers"].setdefault(server, {})
            for entry in entries:
                name = entry["name"]
                record = records.setdefault(name, {"accepted": shown(entry)})
                if digest_of(record["accepted"]) == digest_of(entry):
                    record.pop("pending", None)
                    admitted[name] = digest_of(entry)
                else:
                    record["pending"] = shown(entry)
            if len(json.dumps(records)) > _MOST_OF_A_SERVER:
                # The file is everybody's: one server must not make it too large to be read.
                raise FingerprintError(
                    f"the server {server.rpartition(':')[0]!r} has shown tools of more than {_MOST_OF_A_SERVER:,} "
                    "bytes in all; its new ones are not noted, and nothing of it is offered"
                )
        return admitted, len(admitted) < len(entries)

    def stamp(self) -> tuple[int, int] | None:
        """Changes whenever the file does."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino

    @contextmanager
    def _locked(self) -> Iterator[dict[str, Any]]:
        """Read the file, let the body change what it says, and write it."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            book = self._read()
            yield book
            self._write(book)
        except OSError as error:
            raise self._unusable(error) from error
        finally:
            os.close(lock)

    def _read(self) -> dict[str, Any]:
        try:
            if self.path.stat().st_size > _MOST:
                raise ValueError("it is too large")
            book = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {"version": _VERSION, "servers": {}}
        except (OSError, ValueError, RecursionError) as error:
            raise self._unusable(error) from error
        if not _is_book(book):
            raise self._unusable(ValueError(f"it is no file of fingerprints of version {_VERSION}"))
        return book  # type: ignore[no-any-return]

    def _write(self, book: dict[str, Any]) -> None:
        part = self.path.with_name(f"{self.path.name}.part")
        with open(part, "w", encoding="utf-8", opener=_private) as file:
            json.dump(book, file, ensure_ascii=True, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.path)

    def _unusable(self, error: Exception) -> FingerprintError:
        return FingerprintError(
            f"the fingerprints of remote tools in {str(self.path)!r} cannot be used: {error}; mend the file, or move "
            "it away to accept every tool anew"
        )


class Fingerprints:
    """The part of a book that is about one server."""

    def __init__(self, book: Book, server: str) -> None:
        self._book = book
        self._server = server
        self._stamp: tuple[int, int] | None = None
        self.withheld = False

    def admit(self, entries: list[Mapping[str, Any]]) -> dict[str, str]:
        """The digests of the tools that may be offered, by name. Blocks."""
        admitted, self.withheld = self._book.admit(self._server, entries)
        self._stamp = self._book.stamp()
        return admitted

    @property
    def option(self) -> str:
        """What to say of the file to a user of ``dsh-run gateway``: nothing if it is the user's own."""
        path = self._book.path
        return "" if path == default_path() else f", both with --fingerprints {shlex.quote(str(path.absolute()))}"

    def touched(self) -> bool:
        """Whether the file has changed since. Blocks."""
        return self._book.stamp() != self._stamp


def _settled(record: Any, entry: Mapping[str, Any]) -> bool:
    return record is not None and "pending" not in record and digest_of(record["accepted"]) == digest_of(entry)


def _is_book(book: Any) -> bool:
    if not isinstance(book, dict) or book.get("version") != _VERSION or not isinstance(book.get("servers"), dict):
        return False
    return all(
        isinstance(tools, dict) and all(isinstance(record, dict) and _is_record(record) for record in tools.values())
        for tools in book["servers"].values()
    )


def _is_record(record: dict[str, Any]) -> bool:
    return isinstance(record.get("accepted"), dict) and isinstance(record.get("pending", {}), dict)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
