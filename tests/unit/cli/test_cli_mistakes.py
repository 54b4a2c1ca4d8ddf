"""A user's mistake is one clear line and exit code 2; a bug is a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

HEAD = '[[plugin]]\nid = "mine"\nuse = "./mine.py"\n'

CONFIGS = {
    "malformed TOML": ("[[plugin]\n", "dsh.toml:1:9: malformed TOML: "),
    "an unknown key": (
        '[[plugin]]\nid = "a"\nuse = "greet"\nenabeld = true\n',
        "dsh.toml:4: plugin[0].enabeld: a [[plugin]] has no key 'enabeld'; did you mean 'enabled'?",
    ),
    "an unknown table": ("[hots]\n", "dsh.toml:1: hots: a config file has no key 'hots'; did you mean 'host'?"),
    "a wrong type": (
        '[host]\nthreads = "many"\n',
        "dsh.toml:2: host.threads: expected a whole number from 1 to 10000; got a string, 'many'",
    ),
    "a missing plugin": (
        '[[plugin]]\nid = "a"\nuse = "greeet"\n',
        "dsh.toml:3: plugin[0].use: plugin 'a' (use = 'greeet'): no installed plugin or module is called 'greeet'; "
        "install it, or correct 'use'; did you mean 'greet'?",
    ),
    "two plugins with one id": (
        '[[plugin]]\nid = "a"\nuse = "greet"\n[[plugin]]\nid = "a"\nuse = "greet"\n',
        "dsh.toml:5: plugin[1].id: two plugins have the id 'a' (line 1 and line 4); rename one or remove it",
    ),
}

PLUGINS = {
    "raises on import": ("x = 1 / 0\n", ["'mine'", "ZeroDivisionError: division by zero", "mine.py:1", "remove"]),
    "raises in apply": ('def apply(ctx):\n    raise OSError("a\\nb")\n', ["'mine'", "OSError: a b", "mine.py:2"]),
    "is no plugin": ("x = 1\n", ["'mine'", "apply(ctx)"]),
    "has a syntax error": ("def apply(ctx)\n", ["'mine'", "SyntaxError", "mine.py:1"]),
    "leaves with SystemExit": ("raise SystemExit(0)\n", ["'mine'", "SystemExit"]),
    "has a hook with a misspelt name": (
        "from dsh_runtime import hookimpl\n@hookimpl\ndef tools_pre_exec(exec, next): return next()\n",
        ["'mine'", "'tools_pre_exec'", "did you mean 'tools_pre_execute'?"],
    ),
    "has a hook with a misspelt argument": (
        "from dsh_runtime import hookimpl\n@hookimpl\ndef tools_pre_execute(exe, next): return next()\n",
        ["'mine'", "tools/pre-execute", "'exe'", "did you mean 'exec'?", "it has: exec, next"],
    ),
    "listens to an event that is none": (
        'def apply(ctx):\n    ctx.on("tools/pre-exec", lambda next: next())\n',
        ["'mine'", "'tools/pre-exec'", "did you mean 'tools/pre-execute'?"],
    ),
    "needs a service that nobody provides": (
        'inject = ["databse"]\ndef apply(ctx): pass\n',
        ["'mine'", "'databse'", "add a plugin that does"],
    ),
    "waits for a service under a wrong name": (
        'inject = ["tool"]\ndef apply(ctx): pass\n',
        ["'mine'", "waits for the service 'tool'", "did you mean 'tools'?"],
    ),
    "uses a service under a wrong name": (
        "def apply(ctx): ctx.tool.register(1)\n",
        ["'mine'", "'tool' (did you mean 'tools'?)", "write inject = ['tools']"],
    ),
    "uses an injected service under a wrong name": (
        'inject = ["tools"]\ndef apply(ctx): ctx.tool.register(1)\n',
        ["'mine'", "'tool' (did you mean 'tools'?)", "write ctx.tools"],
    ),
    "registers a tool twice": (
        "from dsh_runtime import tool\n"
        'inject = ["tools"]\n'
        "@tool\n"
        "def f(name: str) -> str:\n"
        '    """F."""\n'
        "    return name\n"
        "def apply(ctx):\n"
        "    ctx.tools.register(f)\n"
        "    ctx.tools.register(f)\n",
        ["plugin 'mine' registers tool 'f' twice", "mine.py:9"],
    ),
    "has an unsupported schema": (
        "from dsh_runtime import ToolDefinition, ToolOutput\n"
        'inject = ["tools"]\n'
        "def apply(ctx):\n"
        '    output = ToolOutput({"type": "string", "pattern": "a"})\n'
        '    ctx.tools.register(ToolDefinition("x", "X.", {"type": "object"}, output, lambda args, exec: "a"))\n',
        ["'mine'", "'x'", "pattern", "remove it"],
    ),
    "has a tool of a name that is taken": (
        "from dsh_runtime import tool\n"
        'inject = ["tools"]\n'
        "@tool\n"
        "def greet(name: str) -> str:\n"
        '    """Greet."""\n'
        "    return name\n"
        "def apply(ctx):\n"
        "    ctx.tools.register(greet)\n",
        ["'mine'", "'greet'", "plugin 'greet'"],
    ),
}


@pytest.mark.parametrize("what", CONFIGS)
@pytest.mark.parametrize("command", [("check",), ("call", "greet", "name=Ada")])
def test_a_wrong_config_is_told_in_one_line(run: Run, write: Write, what: str, command: tuple[str, ...]) -> None:
    """With file, line, rule and remedy, whatever the command."""
    text, message = CONFIGS[what]
    write("dsh.toml", text)
    ended = run(*command)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("what", PLUGINS)
def test_a_wrong_plugin_is_told_in_one_line(run: Run, write: Write, what: str) -> None:
    """With the plugin, the rule and the offender; no traceback."""
    text, parts = PLUGINS[what]
    write("mine.py", text)
    write("dsh.toml", '[[plugin]]\nid = "greet"\nuse = "greet"\n' + HEAD)
    ended = run("call", "greet", "name=Ada")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1, ended.err
    assert [part for part in parts if part not in ended.err] == []


def test_verbose_adds_the_traceback(run: Run, write: Write) -> None:
    """For the plugin's author."""
    write("mine.py", 'def apply(ctx):\n    raise ValueError("no luck")\n')
    write("dsh.toml", HEAD)
    ended = run("-v", "check")
    assert ended.code == 2
    assert "Traceback (most recent call last):" in ended.err
    assert 'raise ValueError("no luck")' in ended.err


def test_all_values_of_a_plugins_config_are_told_at_once(run: Run, write: Write) -> None:
    """Each in its own line, with its place."""
    config = "from attrs import frozen\n@frozen\nclass Config:\n    limit: int = 3\n"
    write("mine.py", config + "def apply(ctx, config): pass\n")
    write("dsh.toml", HEAD + '[plugin.config]\nlimit = "x"\nlimt = 3\n')
    assert run("check").err.splitlines() == [
        "error: dsh.toml:5: plugin[0].config.limit: plugin 'mine': expected an integer; got a string, 'x'",
        "error: dsh.toml:6: plugin[0].config.limt: plugin 'mine': there is no key 'limt' here; did you mean 'limit'?",
    ]


def test_a_missing_config_says_where_it_was_looked_for(run: Run, tmp_path: Path) -> None:
    """And what to do."""
    assert run("tools") == (
        2,
        "",
        f"error: no config file found; looked for 'dsh.toml', '{tmp_path}/user-config/dsh/dsh.toml'; "
        "write a dsh.toml in one of these places, or name another file with --config\n",
    )
    assert run("tools", "--config", "x.toml").err == (
        "error: no config file found; looked for 'x.toml'; correct the path given with --config\n"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("toolz",), "dsh-run has no command 'toolz'; did you mean 'tools'?"),
        (("tools", "--ouput", "json"), "No such option '--ouput'"),
        (("tools", "-o", "yaml"), "Invalid value for '-o' / '--output': 'yaml' is not one of"),
        (("call",), "Missing argument 'NAME'; see 'dsh-run call --help'"),
        (("config", "shwo"), "No such command 'shwo'"),
        (("tools", "extra"), "Got unexpected extra argument (extra); see 'dsh-run tools --help'"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(run: Run, args: tuple[str, ...], message: str) -> None:
    """With the command whose help says more."""
    ended = run(*args)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {message}")
    assert ended.err.count("\n") == 1


def test_a_bug_is_a_traceback(run: Run, greet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not dressed up as a mistake of the user."""
    import dsh_runtime.cli.tools as tools

    def broken(*args: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(tools, "show_tools", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        run("tools")


def test_hostile_text_in_a_config_does_not_reach_the_terminal(run: Run, write: Write) -> None:
    """Messages that quote it write it out."""
    write("dsh.toml", '[[plugin]]\nid = "a\\u001b[2J"\nuse = "greet"\n')
    assert "\x1b[2J" not in run("check").err + run("plugins").out


def test_a_plugin_that_never_loads_is_told_while_it_loads(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First as a warning, at once; then as what is wrong."""
    monkeypatch.setattr("dsh_runtime.loader.start.PATIENCE", 0.5)
    write("mine.py", "import trio\nasync def apply(ctx):\n    await trio.sleep_forever()\n")
    write("dsh.toml", "[host]\nstart_timeout = 1.5\n" + HEAD)
    ended = run("check")
    assert (ended.code, ended.out) == (2, "")
    assert [line.partition(";")[0] for line in ended.err.splitlines()] == [
        "warning: still waiting for plugin 'mine' (loading)",
        "error: dsh.toml:3: plugin 'mine' is still loading after 1.5 s (start_timeout)",
    ]


@pytest.mark.parametrize("what", CONFIGS)
@pytest.mark.parametrize(
    "command", [("check",), ("call", "greet"), ("tools",), ("config", "show"), ("explain", "--would", "greet")]
)
def test_as_json_a_wrong_config_is_one_document(run: Run, write: Write, what: str, command: tuple[str, ...]) -> None:
    """On stdout, with the place of each problem, whatever the command."""
    text, message = CONFIGS[what]
    write("dsh.toml", text)
    if what == "a missing plugin" and command[0] == "config":
        return  # it loads no plugin
    ended = run("-o", "json", *command)
    assert (ended.code, ended.err) == (2, "")
    document = json.loads(ended.out)
    assert (document["ok"], document["is_error"], document["exit_code"]) == (False, True, 2)
    (problem,) = document["problems"]
    assert problem["file"].endswith("dsh.toml")
    assert problem["message"] in message or message.partition(": ")[2] in f"{problem['path']}: {problem['message']}"


@pytest.mark.parametrize("option", [("-o", "json"), ("-ojson",), ("--output", "json"), ("--output=json",)])
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("call", "gret", "name=Ada"), "no plugin offers a tool 'gret'"),
        (("call", "greet", "name"), "argument 'name' is no key=value"),
        (("call", "greet", "--json", "[]"), "--json holds an array"),
        (("tools", "--ouput", "x"), "No such option '--ouput'"),
        (("toolz",), "dsh-run has no command 'toolz'"),
        (("call",), "Missing argument 'NAME'"),
        (("explain",), "explain takes the id of one call"),
    ],
)
def test_as_json_a_wrong_command_line_is_one_document(
    run: Run, greet: Path, option: tuple[str, ...], args: tuple[str, ...], message: str
) -> None:
    """However the option is written."""
    ended = run(*args, *option) if args != ("tools", "--ouput", "x") else run(*option, *args)
    assert (ended.code, ended.err) == (2, "")
    (problem,) = json.loads(ended.out)["problems"]
    assert problem["message"].startswith(message)


def test_the_stdout_of_a_protocol_holds_no_error(run: Run, write: Write) -> None:
    """An MCP client reads there."""
    write("dsh.toml", "[hots]\n")
    ended = run("-o", "json", "mcp")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: dsh.toml:1: hots:")


@pytest.mark.parametrize("group", [("config",), ("log", "--help"), ()])
def test_a_group_without_a_command_prints_its_help(run: Run, group: tuple[str, ...]) -> None:
    """As it is laid out, not on one line."""
    ended = run(*group)
    text = ended.err or ended.out
    assert text.startswith("Usage: dsh-run")
    assert "\nCommands:\n" in text


@pytest.mark.parametrize(
    "plugin", ['id = "mine"\nuse = "./mine.py"\noptional = true\n', 'id = "mine"\nuse = "nope"\noptional = true\n']
)
@pytest.mark.parametrize("command", [("check",), ("call", "greet", "name=Ada"), ("tools",), ("plugins",)])
def test_an_optional_plugin_that_fails_is_told_once(
    run: Run, write: Write, plugin: str, command: tuple[str, ...]
) -> None:
    """By the log or by the command itself."""
    write("mine.py", 'def apply(ctx):\n    raise ValueError("no luck")\n')
    write("dsh.toml", f'[[plugin]]\nid = "greet"\nuse = "greet"\n[[plugin]]\n{plugin}')
    ended = run(*command)
    assert ended.code == 0
    told = [line for line in (ended.out + ended.err).splitlines() if "plugin 'mine'" in line]
    assert len(told) == 1, told
    assert told[0].count("no luck") <= 1


NOTES = """
from dsh_runtime import tool

inject = ["tools"]


@tool
def read_note(path: str) -> str:
    \"""Read a note.\"""
    return path


def apply(ctx):
    ctx.tools.register(read_note)
"""


@pytest.mark.parametrize(
    ("use", "parts"),
    [
        (
            "./notes.py:read_note",
            ["'read_note' is a tool, not a plugin", "apply(ctx)", "leave ':read_note' out of 'use'"],
        ),
        ("./notes.py:nope", ["/notes.py' has no attribute 'nope'"]),
        ("./notes.py:aply", ["did you mean 'apply'?"]),
        ("notes", ["did you mean the file './notes.py'?"]),
    ],
)
def test_a_use_that_misses_says_what_would_do(run: Run, write: Write, use: str, parts: list[str]) -> None:
    """It names what its author knows: the file, not a module that the host invents for it."""
    write("notes.py", NOTES)
    write("dsh.toml", f'[[plugin]]\nid = "notes"\nuse = "{use}"\n')
    ended = run("check")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: dsh.toml:3: plugin[0].use: plugin 'notes'")
    assert [part for part in parts if part not in ended.err] == []
    assert "dsh_file_plugins" not in ended.err
    assert len(ended.err) < 600


def test_guards_are_named_as_listeners_are(run: Run, write: Write) -> None:
    """With the function and its place."""
    write("mine.py", 'inject = ["tools"]\ndef night(exec):\n    return 1 / 0\ndef apply(ctx): ctx.tools.guard(night)\n')
    write("dsh.toml", '[[plugin]]\nid = "greet"\nuse = "greet"\n' + HEAD)
    assert "plugin 'mine', guard night (mine.py:2) raised ZeroDivisionError" in run("call", "greet", "name=Ada").err
    write("mine.py", 'inject = ["tools"]\ndef apply(ctx): ctx.tools.guard(lambda exec: 7)\n')
    said = run("call", "greet", "name=Ada").err
    assert "plugin 'mine', guard apply.<locals>.<lambda> (mine.py:2) answered with 7; return a reason" in said
