"""From the ``mcpServers`` block that desktop and editor clients use to rows of a config."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

import tomlkit
from attrs import frozen
from tomlkit.exceptions import TOMLKitError

_MOST: Final = 4_194_304
_ENV: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
#: The names under which clients keep their servers.
_BLOCKS: Final = ("mcpServers", "servers")
_SECRET: Final = re.compile(r"key|token|secret|password|passwd|auth|credential|cookie", re.IGNORECASE)
#: An argument such as ``API_KEY=…`` (behind ``docker run -e``) or ``Authorization: …`` (behind ``--header``).
_NAMED: Final = re.compile(r"(?P<name>[A-Za-z_][\w-]*)(?P<sign>=|:\s*)(?P<value>.+)", re.DOTALL)
#: A pair in the query of an address.
_QUERY: Final = re.compile(r"([?&][\w.-]+=)([^&#]*)")


class ImportProblemError(Exception):
    """The file cannot be taken over; the message says why."""


@frozen
class Row:
    """One server as a row: its id, its config, and whether it is switched on."""

    id: str
    config: Mapping[str, Any]
    enabled: bool = True


@frozen
class _Values:
    """Texts of one server, with secrets moved into the environment."""

    server: str
    row: str
    #: The variables that are spoken for, each with its value; ``None`` where somebody else sets it.
    variables: dict[str, str | None]
    notes: list[str]

    def of(self, name: str, value: str) -> str:
        """How a value stands in the config."""
        if _ENV.search(value):
            return _ENV.sub(r"${env:\1}", value)
        if _SECRET.search(name):
            variable = self._variable(name, value)
            self.notes.append(
                f"server {self.server!r}: set {variable} in the host's environment; its value is left out"
            )
            return f"${{env:{variable}}}"
        return value.replace("${", "$${")

    def _variable(self, name: str, value: str) -> str:
        """A variable for this value alone: a secret of one server must not be sent to another."""
        plain = _as_variable(name)
        owned = f"{_as_variable(self.row)}_{plain}"
        for variable in chain((plain, owned), (f"{owned}_{number}" for number in count(2))):
            if self.variables.setdefault(variable, value) == value:
                return variable
        raise AssertionError("there is always a free one")


def _as_variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")


def rows_of(file: Path, into: Path | None = None) -> tuple[list[Row], list[str]]:
    """The rows for the servers of a file, and what a person has to do by hand.

    Variables that the file, or the config ``into``, refers to already are somebody else's.
    """
    document = _read(file)
    block = _block(document, file)
    variables: dict[str, str | None] = dict.fromkeys(_ENV.findall(json.dumps(document) + _text_of(into)))
    taken: set[str] = set()
    rows: list[Row] = []
    notes: list[str] = []
    for name, server in block.items():
        if not isinstance(server, dict):
            raise ImportProblemError(f"{file}: server {name!r} is no object")
        row_id = _free(_row_id(name), taken)
        values = _Values(name, row_id, variables, notes)
        rows.append(Row(row_id, _config(name, server, values, file), server.get("disabled") is not True))
    return rows, notes


def add_rows(rows: list[Row], into: Path | None) -> str:
    """The text of the rows; with ``into``, appended to that config file, whose other text stays as it is."""
    text = _text(rows)
    if into is None:
        return text
    try:
        before = _text_of(into)
        existing = tomlkit.parse(before).unwrap().get("plugin", [])
    except TOMLKitError as error:
        raise ImportProblemError(f"the config {into} cannot be read: {error}") from error
    known = {row.get("id") for row in existing if isinstance(row, dict)}
    clash = sorted(row.id for row in rows if row.id in known)
    if clash:
        raise ImportProblemError(f"{into} has rows named {', '.join(clash)} already; rename or remove them first")
    joint = "" if not before or before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"
    _replace(into, before + joint + text)
    return text


def _text_of(config: Path | None) -> str:
    try:
        return config.read_text("utf-8") if config is not None and config.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ImportProblemError(f"the config {config} cannot be read: {error}") from error


def _read(file: Path) -> Any:
    try:
        if file.stat().st_size > _MOST:
            raise ImportProblemError(f"{file} is larger than {_MOST:,} bytes")
        return json.loads(file.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ImportProblemError(f"{file} cannot be read as JSON: {error}") from error


def _block(document: Any, file: Path) -> dict[str, Any]:
    for name in _BLOCKS:
        block = document.get(name) if isinstance(document, dict) else None
        if isinstance(block, dict) and block:
            return block
    raise ImportProblemError(f"{file} has no 'mcpServers' block with servers in it")


def _config(name: str, server: Mapping[str, Any], values: _Values, file: Path) -> dict[str, Any]:
    subject = f"{file}: server {name!r}"
    if "command" in server:
        config: dict[str, Any] = {"command": _command(server, values, subject)}
        env = _texts(server.get("env", {}), f"{subject}: 'env'")
        # These clients hand their own environment on; a server finds its interpreter by PATH and its files by HOME.
        config["env"] = {"PATH": "${env:PATH}", "HOME": "${env:HOME}"} | {
            key: values.of(key, value) for key, value in env.items()
        }
        if isinstance(server.get("cwd"), str):
            config["cwd"] = values.of("", server["cwd"])
    elif isinstance(server.get("url", server.get("serverUrl")), str):
        if server.get("type") == "sse":
            raise ImportProblemError(
                f"{subject} speaks the old SSE transport, which is not spoken here; ask for its "
                "streamable HTTP endpoint"
            )
        config = {"url": _address(server.get("url", server.get("serverUrl")), values)}
        headers = _texts(server.get("headers", {}), f"{subject}: 'headers'")
        if headers:
            config["headers"] = {key: values.of(key, value) for key, value in headers.items()}
    else:
        raise ImportProblemError(f"{subject} has neither a 'command' nor a 'url'")
    config["prefix"] = f"{_row_id(name).replace('-', '_')}_"
    return config


def _address(url: str, values: _Values) -> str:
    """An address, with what its query names like a secret moved into the environment."""
    rest, *pairs = _QUERY.split(url)
    parts = [values.of("", rest)]
    for name, value, text in zip(pairs[::3], pairs[1::3], pairs[2::3], strict=True):
        parts += [name, values.of(name.strip("?&="), value), values.of("", text)]
    return "".join(parts)


def _command(server: Mapping[str, Any], values: _Values, subject: str) -> list[str]:
    command, arguments = server["command"], server.get("args", [])
    if not isinstance(command, str) or not isinstance(arguments, list):
        raise ImportProblemError(f"{subject}: 'command' is a text and 'args' a list")
    if not all(isinstance(argument, str) for argument in arguments):
        raise ImportProblemError(f"{subject}: 'args' has a member that is no text")
    return [values.of("", command), *_arguments(arguments, values)]


def _arguments(arguments: list[str], values: _Values) -> Iterator[str]:
    """The arguments, with what follows an option named like a secret moved into the environment."""
    option = ""
    for part in arguments:
        name, equals, value = part.partition("=")
        named = _NAMED.fullmatch(part)
        if part.startswith("-") and equals:
            yield f"{name}={values.of(name, value)}"
            option = ""
        elif named and _SECRET.search(named["name"]):
            yield f"{named['name']}{named['sign']}{values.of(named['name'], named['value'])}"
            option = ""
        else:
            is_option = part.startswith("-")
            yield values.of("" if is_option else option, part)
            option = part if is_option else ""


def _texts(value: Any, subject: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ImportProblemError(f"{subject} maps names to texts")
    return value


def _row_id(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "server"


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    taken.add(name)
    return name


def _text(rows: list[Row]) -> str:
    document = tomlkit.document()
    array = tomlkit.aot()
    for row in rows:
        table = tomlkit.table()
        table["id"] = row.id
        table["use"] = "mcp-client"
        if not row.enabled:
            table["enabled"] = False
        config = tomlkit.table()
        for key, value in row.config.items():
            config[key] = value
        table["config"] = config
        array.append(table)
    document["plugin"] = array
    return tomlkit.dumps(document)


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, "utf-8")
        os.replace(part, path)
    except OSError as error:
        raise ImportProblemError(f"the config {path} cannot be written: {error}") from error
