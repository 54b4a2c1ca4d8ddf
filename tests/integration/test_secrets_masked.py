"""Secrets on their way through a whole host: wherever they turn up, no sink has them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

DSH_RUN = os.path.join(sysconfig.get_path("scripts"), "dsh-run")
TOKEN = "ghp_" + "aB3" * 13
BASIC = base64.b64encode(b"ada:hunter2").decode()
SECRETS = (TOKEN, "hunter2", "opensesame", BASIC)
CONFIG = """
[host.log]
path = "log.db"

[[plugin]]
id = "redact"
use = "redact"

[[plugin]]
id = "audit"
use = "audit-jsonl"
config = { path = "audit.jsonl", arguments = true }

[[plugin]]
id = "spill"
use = "spill"
config = { folder = "spilled" }

[[plugin]]
id = "otel"
use = "otel"
config = { export = "console", arguments = true, content = true }

[[plugin]]
id = "leaky"
use = "./leaky.py"
"""
LEAKY = """
import logging

from dsh_hookspecs import Ask, ContextMessage, Deny, GenericCall, GenericResult
from dsh_runtime import define_tool

inject = ["tools"]
TOKEN = "ghp_" + "aB3" * 13
NAMED = {"password": {"type": "string"}, "more": {"type": "json"}}


def apply(ctx):
    async def login(args, exec):
        exec.defer_context(ContextMessage([{"type": "text", "text": f"used {TOKEN}"}], "leaky", {"token": TOKEN}))
        exec.progress(1, 2, f"with {TOKEN}")
        logging.getLogger("leaky").warning("logged in with %s and password=%s", TOKEN, args["password"])
        return {"password": "hunter2", "text": TOKEN, "long": "x" * 70000 + TOKEN}

    async def fail(args, exec):
        try:
            raise KeyError(TOKEN)
        except KeyError as error:
            error.add_note(f"api_key=opensesame and {TOKEN}")
            raise RuntimeError(f"password={args['password']} does not work, nor {TOKEN}") from error

    for name, body in {"login": login, "fail": fail, "denied": login, "asked": login}.items():
        ctx.tools.register(
            define_tool(
                name=name,
                description="",
                parameters=NAMED,
                output={"type": "json"},
                execute=body,
                present_call=lambda args: GenericCall(title=f"Log in with {args.get('password')} and {TOKEN}"),
                present_result=lambda args, result: GenericResult(title=f"In with {args.get('password')}, {TOKEN}"),
            )
        )

    def policy(exec, next):
        if exec.name == "denied":
            return Deny(f"no, since {TOKEN} and password=hunter2")
        if exec.name == "asked":
            return Ask(f"may it use {TOKEN}?")
        if exec.arguments.get("more") == "policy fails":
            raise ValueError(f"policy knows {TOKEN}")
        return next()

    ctx.on("tools/pre-execute", policy)
"""
NESTED = json.dumps({"deep": [{TOKEN: 1, "api_key": "opensesame"}, ["Bearer " + TOKEN]]})
ENCODED = json.dumps(
    {
        "argv": ["login", "--password", "hunter2"],
        "next": "https%3A%2F%2Fada%3Ahunter2%40db.example%2F%3Ftoken%3Dopensesame",
        "sent": f"Authorization: Basic {BASIC}",
        "config": f'{{"auths": {{"r.example": {{"auth": "{BASIC}"}}}}}}',
        "bytes": repr({b"password": b"hunter2"}),
    }
)
CALLS = {
    "in arguments, names of arguments, results, contexts": ("login", f"more:={NESTED}"),
    "in arguments, as URLs, headers and commands have them": ("login", f"more:={ENCODED}"),
    "in an exception": ("fail",),
    "in a denial": ("denied",),
    "in a question": ("asked",),
    "in the failure of a policy": ("login", "more=policy fails"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A host with everything that writes, and tools and policy that say too much."""
    (tmp_path / "dsh.toml").write_text(CONFIG)
    (tmp_path / "leaky.py").write_text(LEAKY)
    return tmp_path


def dsh_run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DSH_RUN, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )


def leaks(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def written(folder: Path) -> str:
    """Everything that the host has written."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.name not in ("leaky.py", "dsh.toml")]
    return "".join(file.read_bytes().decode("utf-8", "replace") for file in files if "__pycache__" not in file.parts)


@pytest.mark.parametrize("words", CALLS.values(), ids=CALLS)
def test_no_sink_has_a_secret(folder: Path, words: tuple[str, ...]) -> None:
    """Neither session log, audit file and spilled texts, nor what is logged, traced and told on stderr."""
    ended = dsh_run(folder, "-v", "call", *words, "password=hunter2")
    assert leaks(ended.stderr) == []
    assert "dsh.call.digest" in ended.stderr
    text = written(folder)
    assert leaks(text) == []
    assert "[redacted: " in text
    shown = "".join(dsh_run(folder, "log", *more).stdout for more in (("calls",), ("export",)))
    assert leaks(shown) == []
    assert "[redacted: " in shown


@pytest.mark.parametrize("output", ["plain", "json"])
@pytest.mark.parametrize(
    "words", [("denied",), ("asked",), ("login", "more=policy fails")], ids=lambda words: words[-1]
)
def test_what_policy_would_say_has_no_secret(folder: Path, words: tuple[str, ...], output: str) -> None:
    """Told beforehand as it is told afterwards."""
    ended = dsh_run(folder, "explain", "-o", output, "--would", *words, "password=hunter2")
    assert leaks(ended.stdout + ended.stderr) == []
    assert "[redacted: " in ended.stdout


def test_what_people_see_of_the_record_has_no_secret(folder: Path) -> None:
    """The story of a call, and its cards; and the cards while it is made."""
    made = dsh_run(folder, "call", "-o", "rich", "fail", "password=hunter2")
    (call,) = json.loads(dsh_run(folder, "log", "calls", "-o", "json").stdout)
    told = dsh_run(folder, "explain", call["call_id"]).stdout
    replayed = dsh_run(folder, "replay", call["call_id"]).stdout
    for shown in (made.stdout + made.stderr, told, replayed):
        assert leaks(shown) == []
        assert "[redacted: " in shown
