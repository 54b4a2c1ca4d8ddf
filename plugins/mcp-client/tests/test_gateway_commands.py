"""``dsh-run gateway``: changed tools and how they are accepted, and the servers of other clients."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from dsh_plugin_mcp_client._commands import gateway
from dsh_plugin_mcp_client._fingerprints import Book
from gateway_kit import entry

DSH_RUN = Path(sys.executable).with_name("dsh-run")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A file in which two tools have changed."""
    path = tmp_path / "fingerprints.json"
    for server in ("files:0123", "web:0123"):
        Book(path).admit(server, [entry("echo"), entry("pid")])
        Book(path).admit(server, [entry("echo", description="Other.\u202e\x1b[31m"), entry("pid")])
    return path


def run(*words: str, book: Path | None = None, given: str = "") -> Result:
    """The outcome of a command."""
    options = ["--fingerprints", str(book)] if book is not None else []
    return CliRunner().invoke(gateway, [*words, *options], input=given, standalone_mode=False)


def test_the_command_is_part_of_dsh_run() -> None:
    outcome = subprocess.run([DSH_RUN, "gateway", "status", "--help"], capture_output=True, text=True, check=True)
    assert "has changed since it was accepted" in outcome.stdout


def test_status_shows_what_has_changed(book: Path) -> None:
    outcome = run("status", book=book)
    assert outcome.return_value == 1
    assert '-  "description": "Does echo."' in outcome.output
    assert "files/echo" in outcome.output


def test_what_a_hostile_server_writes_does_not_steer_the_terminal(book: Path) -> None:
    shown = run("status", book=book).output
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_accepting_takes_a_yes(book: Path) -> None:
    assert run("accept", "files/echo", book=book, given="n\n").return_value == 1
    assert len(Book(book).changes()) == 2
    assert run("accept", "files/echo", book=book, given="y\n").return_value == 0
    assert [change.server for change in Book(book).changes()] == ["web:0123"]


def test_accepting_everything(book: Path) -> None:
    assert run("accept", "--all", "--yes", book=book).return_value == 0
    assert run("status", book=book).return_value == 0


@pytest.mark.parametrize("words", [["accept"], ["accept", "--all", "echo"], ["accept", "no-such"], ["accept", "echo"]])
def test_a_choice_that_is_none_accepts_nothing(book: Path, words: list[str]) -> None:
    assert run(*words, "--yes", book=book).exception is not None
    assert len(Book(book).changes()) == 2


def test_status_says_which_file_it_looked_at(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has changed in a file that no host uses."""
    monkeypatch.setattr("dsh_plugin_mcp_client._fingerprints.default_path", lambda: tmp_path / "other.json")
    assert "no remote tool has been seen" in run("status").output.lower()
    assert str(tmp_path / "other.json") in run("status").output
    assert run("accept", "--all", "--yes", book=book).return_value == 0
    assert str(book) in run("status", book=book).output


def test_a_file_that_is_named_and_not_there_is_an_error(tmp_path: Path) -> None:
    assert "no file of fingerprints" in str(run("status", book=tmp_path / "misspelt.json").exception)


# Servers of other clients


def document(**servers: Any) -> str:
    return json.dumps({"mcpServers": servers})


def test_servers_of_other_clients_become_rows(tmp_path: Path) -> None:
    file, into = tmp_path / "client.json", tmp_path / "dsh.toml"
    into.write_text("# mine\n[host]\npresentation = 'native'\n")
    file.write_text(
        document(
            **{
                "File System": {
                    "command": "npx",
                    "args": ["-y", "server", "${HOME}", "--api-key", "hidden-1", "--token=hidden-2", "$${x}"],
                    "env": {"API_KEY": "hidden-3", "DEBUG": "1"},
                },
                "remote": {"type": "http", "url": "https://x.test/mcp", "headers": {"Authorization": "hidden-4"}},
                "off": {"command": "x", "disabled": True},
            }
        )
    )
    outcome = run("import", str(file), "--into", str(into))
    assert outcome.return_value == 0, outcome.exception
    text = into.read_text()
    assert text.startswith("# mine\n[host]\n")
    assert "hidden" not in text
    files, remote, off = tomllib.loads(text)["plugin"]
    assert files["id"] == "file-system"
    assert files["use"] == "mcp-client"
    assert files["config"]["command"][:5] == ["npx", "-y", "server", "${env:HOME}", "--api-key"]
    assert files["config"]["env"]["DEBUG"] == "1"
    assert remote["config"]["url"] == "https://x.test/mcp"
    assert off["enabled"] is False


def test_a_secret_of_one_server_is_not_sent_to_another(tmp_path: Path) -> None:
    file, into = tmp_path / "client.json", tmp_path / "dsh.toml"
    into.write_text("[[plugin]]\nid = 'mine'\nconfig = { key = '${env:TOKEN}' }\n")
    bearer = {"Authorization": "Bearer hidden-1"}
    servers = {
        "a": {"url": "https://a.test/mcp", "headers": bearer},
        "b": {"url": "https://b.test/mcp", "headers": {"Authorization": "Bearer hidden-2"}},
        "c": {"url": "https://c.test/mcp", "headers": bearer},
        "d": {"command": "x", "args": ["--token", "hidden-3", "--key=hidden-4"], "env": {"KEY": "hidden-5"}},
        "e": {"command": "x", "env": {"D_KEY": "${D_KEY}"}},
    }
    file.write_text(document(**servers))
    outcome = run("import", str(file), "--into", str(into))
    assert outcome.return_value == 0, outcome.exception
    _, a, b, c, d, e = [row.get("config", {}) for row in tomllib.loads(into.read_text())["plugin"]]
    assert [row["headers"]["Authorization"] for row in (a, b, c)] == [
        "${env:AUTHORIZATION}",
        "${env:B_AUTHORIZATION}",
        "${env:AUTHORIZATION}",
    ]
    assert d["command"] == ["x", "--token", "${env:D_TOKEN}", "--key=${env:KEY}"]
    assert d["env"]["KEY"] == "${env:D_KEY_2}"
    assert e["env"]["D_KEY"] == "${env:D_KEY}"
    assert "set B_AUTHORIZATION in the host's environment" in outcome.output


@pytest.mark.parametrize(
    ("argument", "row"),
    [
        ("API_KEY=hidden", "API_KEY=${env:API_KEY}"),
        ("Authorization: Bearer hidden", "Authorization: ${env:AUTHORIZATION}"),
        ("Authorization:${AUTH}", "Authorization:${env:AUTH}"),
        ("https://x.test/?a=b", "https://x.test/?a=b"),
        ("MODE=${", "MODE=$${"),
    ],
)
def test_a_secret_that_an_argument_names_stays_out(tmp_path: Path, argument: str, row: str) -> None:
    file, into = tmp_path / "client.json", tmp_path / "dsh.toml"
    file.write_text(document(one={"command": "x", "args": ["-e", argument]}))
    assert run("import", str(file), "--into", str(into)).return_value == 0
    assert tomllib.loads(into.read_text())["plugin"][0]["config"]["command"] == ["x", "-e", row]


def test_a_secret_in_an_address_stays_out(tmp_path: Path) -> None:
    file, into = tmp_path / "client.json", tmp_path / "dsh.toml"
    file.write_text(document(one={"url": "https://x.test/mcp?mode=a&api_key=hidden&user=${WHO}#top"}))
    assert run("import", str(file), "--into", str(into)).return_value == 0
    config = tomllib.loads(into.read_text())["plugin"][0]["config"]
    assert config["url"] == "https://x.test/mcp?mode=a&api_key=${env:API_KEY}&user=${env:WHO}#top"


def test_importing_twice_overwrites_nothing(tmp_path: Path) -> None:
    file, into = tmp_path / "client.json", tmp_path / "dsh.toml"
    file.write_text(document(one={"command": "x"}))
    run("import", str(file), "--into", str(into))
    before = into.read_text()
    assert "already" in str(run("import", str(file), "--into", str(into)).exception)
    assert into.read_text() == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 5000,
        document(),
        document(a=1),
        document(a={}),
        document(a={"command": 1}),
        document(a={"command": "x", "args": [1]}),
        document(a={"command": "x", "env": {"a": 1}}),
        document(a={"type": "sse", "url": "http://x"}),
    ],
)
def test_a_file_that_cannot_be_taken_over_changes_nothing(tmp_path: Path, text: str) -> None:
    file, into = tmp_path / "client.json", tmp_path / "dsh.toml"
    file.write_text(text)
    assert str(file) in str(run("import", str(file), "--into", str(into)).exception)
    assert not into.exists()
