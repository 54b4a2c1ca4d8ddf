"""``dsh-run plugins graph``: what is drawn is what the host has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.cli.plugins.graph import EventPoint, Graph, ListenerPoint, PluginPoint, ServicePoint, ServiceUse
from dsh_runtime.cli.plugins.graph_svg import svg_of

Run = Callable[..., Any]
Write = Callable[[str, str], Path]
SVG = "{http://www.w3.org/2000/svg}"

CLOCK = """\
from dsh_runtime import Service

class Clock(Service):
    name = "clock"
"""
POLICY = """\
inject = {"tools": True, "clock": True, "redact": False}

def apply(ctx):
    async def check(exec, next):
        return await next()

    def closed(exec):
        return None

    ctx.on("tools/pre-execute", check)
    ctx.on("tools/result", lambda exec, result: None)
    ctx.tools.guard(closed)
"""
EARLY = """\
from dsh_runtime import hookimpl

@hookimpl(tryfirst=True)
async def tools_pre_execute(exec, next):
    return await next()
"""


@pytest.fixture
def config(write: Write) -> Path:
    """A host with a service, its consumer, an early policy, a tool, and a plugin that waits."""
    write("clock.py", CLOCK)
    write("policy.py", POLICY)
    write("early.py", EARLY)
    write("waits.py", 'inject = ["database"]\ndef apply(ctx): pass\n')
    uses = {"policy": "./policy.py", "early": "./early.py", "clock": "./clock.py:Clock", "greet": "greet"}
    rows = [f'[[plugin]]\nid = "{name}"\nuse = "{use}"\n' for name, use in {**uses, "waits": "./waits.py"}.items()]
    return write("dsh.toml", "".join(rows))


def test_as_text(run: Run, config: Path) -> None:
    ended = run("plugins", "graph")
    assert (ended.code, ended.err) == (0, "")
    plugins, services, listeners = ended.out.split("\n\n")
    assert plugins.splitlines() == [
        "plugins, in order",
        "   1  policy  active",
        "   2  early   active",
        "   3  clock   active",
        "   4  greet   active   offers greet",
        "   5  waits   pending",
    ]
    head, *lines = services.splitlines()
    assert head == "services: who provides it, who injects it (? is optional)"
    words = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert words.items() >= {
        ("clock", "clock <- policy"),
        ("database", "nobody <- waits"),
        ("redact", "nobody <- policy?"),
        ("tools", "host <- policy, greet"),
    }
    assert listeners.splitlines() == [
        "listeners, the first one outermost",
        "  tools/pre-execute  (waterfall)",
        "   1  early   tools_pre_execute (early.py:3)  [first]",
        "   2  policy  check (policy.py:4)",
        "  guards  (can only deny)",
        "   1  policy  closed (policy.py:7)",
        "  tools/result  (emit)",
        "   1  policy  <lambda> (policy.py:11)",
    ]


def test_as_json(run: Run, config: Path) -> None:
    document = json.loads(run("plugins", "graph", "-o", "json").out)
    assert document["plugins"][3] == {"id": "greet", "state": "active", "tools": ["greet"]}
    clock = {"name": "clock", "provider": "clock", "users": [{"plugin": "policy", "required": True}]}
    assert clock in document["services"]
    assert [event["name"] for event in document["events"]] == ["tools/pre-execute", "guards", "tools/result"]


def test_as_svg(run: Run, config: Path, tmp_path: Path) -> None:
    """A picture that holds every name, and a line for what connects them."""
    ended = run("plugins", "graph", "--svg", "host.svg")
    assert (ended.code, ended.out, ended.err) == (0, "drawn: host.svg\n", "")
    root = ElementTree.fromstring((tmp_path / "host.svg").read_text("utf-8"))
    texts = {"".join(text.itertext()) for text in root.iter(f"{SVG}text")}
    for name in ("policy", "clock", "database", "tools/pre-execute", "greet"):
        assert any(name in text for text in texts)
    styles = [path.get("class") for path in root.iter(f"{SVG}path")]
    assert (styles.count("gives"), styles.count("may"), styles.count("hears")) == (1, 1, 4)
    assert styles.count(None) == 4


def test_a_picture_is_the_same_each_time(run: Run, config: Path, tmp_path: Path) -> None:
    run("plugins", "graph", "--svg", "a.svg")
    run("plugins", "graph", "--svg", "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dsh.toml", "--svg writes over what is there, so it takes names that end in .svg; got 'dsh.toml'"),
        ("nowhere/host.svg", "'nowhere/host.svg' cannot be written: No such file or directory; name another file"),
    ],
)
def test_a_file_that_cannot_be_drawn_into_is_one_clear_line(run: Run, config: Path, name: str, said: str) -> None:
    before = config.read_text()
    ended = run("plugins", "graph", "--svg", name)
    assert (ended.code, ended.out, ended.err) == (2, "", f"error: {said}\n")
    assert config.read_text() == before


def test_a_host_without_plugins_is_drawn_too(run: Run, write: Write) -> None:
    write("dsh.toml", "")
    assert run("plugins", "graph").code == 0
    assert run("plugins", "graph", "--svg", "host.svg").code == 0


NAMES = st.text(st.characters(), max_size=80)
LISTENERS = st.builds(ListenerPoint, NAMES, NAMES, st.none() | NAMES)
GRAPHS = st.builds(
    Graph,
    plugins=st.lists(st.builds(PluginPoint, NAMES, NAMES, st.lists(NAMES, max_size=2)), max_size=3),
    services=st.lists(
        st.builds(
            ServicePoint, NAMES, st.none() | NAMES, st.lists(st.builds(ServiceUse, NAMES, st.booleans()), max_size=2)
        ),
        max_size=3,
    ),
    events=st.lists(st.builds(EventPoint, NAMES, NAMES, st.lists(LISTENERS, max_size=2)), max_size=3),
)


@given(GRAPHS)
def test_no_name_breaks_the_picture(graph: Graph) -> None:
    """It is XML whatever plugins, functions and tools are called, and nobody's name becomes markup."""
    root = ElementTree.fromstring(svg_of(graph).encode("utf-8"))
    known = {f"{SVG}{tag}" for tag in ("svg", "title", "style", "rect", "path", "text")}
    assert {element.tag for element in root.iter()} <= known
