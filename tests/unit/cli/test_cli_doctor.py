"""``dsh-run doctor``: every cause is named with its place and its remedy, and nothing well is complained of."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dsh_runtime.loader import discover

Run = Callable[..., Any]
Write = Callable[[str, str], Path]
Diagnose = Callable[..., list[dict[str, Any]]]

FINE = "def apply(ctx): pass\n"


@pytest.fixture
def config(write: Write) -> Callable[..., None]:
    """Write a config whose rows are given as ``name=source`` of a file plugin, or as TOML."""

    def write_config(*rows: str, host: str = "", **plugins: str) -> None:
        for name, source in plugins.items():
            write(f"{name}.py", source)
        files = [f'id = "{name}"\nuse = "./{name}.py"' for name in plugins]
        write("dsh.toml", host + "".join(f"[[plugin]]\n{row}\n" for row in [*files, *rows]))

    return write_config


@pytest.fixture
def diagnose(run: Run) -> Diagnose:
    """What the doctor finds; the exit code has to say whether it is anything."""

    def findings() -> list[dict[str, Any]]:
        ended = run("doctor", "-o", "json")
        document = json.loads(ended.out)
        found: list[dict[str, Any]] = document["findings"]
        wrong = any(one["severity"] != "note" for one in found)
        assert (ended.code, document["ok"]) == ((1, False) if wrong else (0, True)), ended.err
        return found

    return findings


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install a wheel where only this test sees it."""
    site = tmp_path / "site"
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])

    def install(name: str, entry_point: str, *, source: str = FINE, requires: str | None = None) -> None:
        module = name.replace("-", "_")
        info = site / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (site / f"{module}.py").write_text(source)
        (info / "entry_points.txt").write_text(f"[dsh.plugins]\n{entry_point} = {module}\n")
        extra = f"Requires-Dist: {requires}\n" if requires else ""
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{extra}\n")
        discover.forget_installed()

    yield install
    for module in [name for name, found in sys.modules.items() if str(site) in str(getattr(found, "__file__", ""))]:
        del sys.modules[module]
    discover.forget_installed()


def only(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The one finding that there is."""
    assert len(found) == 1, found
    return found[0]


def test_a_healthy_config_is_told_in_one_line(run: Run, greet: Path) -> None:
    """And ends with exit code 0."""
    assert run("doctor") == (0, "ok: dsh.toml: 1 plugin, 1 active, 1 can be unloaded and loaded again\n", "")


def test_the_document_of_a_healthy_config(run: Run, greet: Path) -> None:
    """Says of each plugin that it is active and unloads."""
    assert json.loads(run("doctor", "-o", "json").out) == {
        "ok": True,
        "files": ["dsh.toml"],
        "plugins": [{"id": "greet", "state": "active", "unloads": True}],
        "findings": [],
    }


def test_a_finding_as_people_read_it(run: Run, config: Callable[..., None], tmp_path: Path) -> None:
    """What is wrong, where in the config, what to do; then the count."""
    config(bad="def apply(ctx):\n    raise ValueError('no luck')\n")
    assert run("doctor").out.splitlines() == [
        f"error: plugin 'bad' failed at {tmp_path}/bad.py:2: ValueError: no luck [failed]",
        "  config: dsh.toml:1",
        "  do: mend it, or remove it from the config",
        "found: dsh.toml: 1 plugin, 0 active, 0 can be unloaded and loaded again",
    ]


def test_a_config_that_cannot_be_used_is_no_finding(run: Run, write: Write) -> None:
    """Exit code 2, as everywhere."""
    write("dsh.toml", "[host]\nthreads = 0\n")
    ended = run("doctor")
    assert (ended.code, ended.out) == (2, "")
    assert "host.threads" in ended.err
    assert json.loads(run("doctor", "-o", "json").out)["exit_code"] == 2


@pytest.mark.parametrize(
    ("source", "kind", "line", "says", "remedy"),
    [
        ("import nowhere_at_all\n", "import", 1, "No module named 'nowhere_at_all'", "correct it"),
        ("x = 1\ny = = 2\n", "import", 2, "SyntaxError", "correct it"),
        ("x = 1\n1 / 0\n" + FINE, "import", 2, "ZeroDivisionError", "correct it"),
        ("raise SystemExit(3)\n", "import", 1, "SystemExit: 3", "correct it"),
        ("def apply(ctx):\n    raise SystemExit(3)\n", "failed", 2, "SystemExit: 3", "a plugin cannot end the host"),
        ("def apply(ctx):\n    ctx.on('tools/pre-exec', print)\n", "hook", 2, "no hookspec", "tools/pre-execute"),
        (
            "from dsh_hookspecs import hookimpl\n@hookimpl\ndef tools_resul(exec): pass\n",
            "hook",
            2,
            "no hookspec declares",
            "did you mean 'tools_result'?",
        ),
        ("requires_hookspecs = '99.0'\n" + FINE, "version", None, "built for hookspecs 99.0", "update the older"),
        ("x = 1\n", "failed", None, "is no plugin", "apply(ctx)"),
    ],
)
def test_why_a_plugin_is_not_active(
    diagnose: Diagnose, config: Callable[..., None], source: str, kind: str, line: int | None, says: str, remedy: str
) -> None:
    """The cause, the author's line, the row of the config, what to do."""
    config(bad=source)
    found = only(diagnose())
    assert (found["kind"], found["severity"], found["plugin"]) == (kind, "error", "bad")
    assert says in found["message"]
    assert remedy in f"{found['message']}; {found['remedy']}"
    assert (found["place"] or {}).get("line") == line
    assert found["config"]["line"] in (1, 3)


def test_a_use_that_leads_nowhere(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """The nearest name is the remedy."""
    config('id = "g"\nuse = "greeet"')
    found = only(diagnose())
    assert (found["kind"], found["remedy"]) == ("not-found", "did you mean 'greet'?")


def test_a_use_that_is_like_nothing(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """A list of what there is would be no remedy."""
    config('id = "g"\nuse = "qqqqqq"')
    assert only(diagnose())["remedy"] == "install it, or correct 'use'"


def test_a_wrong_config_is_named_with_its_path(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """Each path is a finding of its own, with its line."""
    config('id = "gate"\nuse = "permission-gate"\n[plugin.config]\ndeflt = 1\nrules = 2')
    found = diagnose()
    assert sorted((one["kind"], one["config"]["path"], one["config"]["line"]) for one in found) == [
        ("config", "plugin[0].config.deflt", 5),
        ("config", "plugin[0].config.rules", 6),
    ]


def test_a_circle_is_told_of_each_member(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """With the way round."""
    config(
        a="inject = ['b']\nprovides = ['a']\n" + FINE,
        b="inject = ['a']\nprovides = ['b']\n" + FINE,
    )
    found = diagnose()
    assert [(one["kind"], one["plugin"]) for one in found] == [("circle", "a"), ("circle", "b")]
    assert "a -> b -> a" in found[0]["message"]
    assert found[0]["remedy"] == "make one of the services optional in inject"


def test_a_circle_of_which_only_the_sources_know(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """The services that an apply would provide which has never run; who waits for the circle is in none."""
    config(
        outside="inject = ['a']\n" + FINE,
        a="inject = ['b']\ndef apply(ctx): ctx.provide('a', 1)\n",
        b="inject = ['c']\ndef apply(ctx): ctx.provide('b', 1)\n",
        c="inject = ['a']\ndef apply(ctx): ctx.provide('c', 1)\n",
    )
    found = {one["plugin"]: one for one in diagnose()}
    assert {plugin: one["kind"] for plugin, one in found.items()} == {
        "outside": "service", "a": "circle", "b": "circle", "c": "circle",
    }  # fmt: skip
    assert "a -> b -> c -> a" in found["a"]["message"] and "c -> a -> b -> c" in found["c"]["message"]
    assert found["a"]["remedy"] == "make one of the services optional in inject"
    assert "plugin 'a' of the config provides 'a' and is pending" in found["outside"]["remedy"]


def test_an_installed_plugin_that_could_provide_a_missing_service(
    diagnose: Diagnose, config: Callable[..., None]
) -> None:
    """Named with its wheel and the row to add."""
    config(wants="inject = ['redact']\n" + FINE)
    found = only(diagnose())
    assert (found["kind"], found["plugin"]) == ("service", "wants")
    assert '[[plugin]] id = "redact", use = "redact" (dsh-plugin-redact ' in found["remedy"]


@pytest.mark.parametrize(
    "source",
    [
        "provides = ('clock',)\n",
        "def apply(ctx): ctx.provide('clock', 1)\n",
        "from dsh_runtime import Service\nclass Clock(Service):\n    name = 'clock'\n",
        "import dsh_runtime\nclass Clock(dsh_runtime.Service):\n    name: str = 'clock'\n",
    ],
)
def test_every_way_to_declare_a_service_is_seen_without_running_it(
    diagnose: Diagnose, config: Callable[..., None], wheel: Callable[..., None], source: str
) -> None:
    """The source of an installed plugin is read; importing it would end the test."""
    wheel("acme-clock", "acme", source="raise SystemExit('imported')\n" + source)
    config(wants="inject = ['clock']\n" + FINE)
    assert "(acme-clock 1.0)" in only(diagnose())["remedy"]


def test_a_disabled_plugin_that_could_provide_a_missing_service(
    diagnose: Diagnose, config: Callable[..., None]
) -> None:
    """The remedy is to enable it; that it is disabled is a note."""
    config('id = "mask"\nuse = "redact"\nenabled = false', wants="inject = ['redact']\n" + FINE)
    waiting, disabled = diagnose()
    assert "plugin 'mask' of the config provides 'redact' and is disabled" in waiting["remedy"]
    assert (disabled["kind"], disabled["severity"]) == ("disabled", "note")


def test_a_broken_plugin_that_should_provide_a_missing_service(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """Whoever waits is sent on to the cause."""
    config(
        clock="provides = ['clock']\ndef apply(ctx): 1 / 0\n",
        wants="inject = ['clock']\n" + FINE,
    )
    broken, waiting = diagnose()
    assert (broken["kind"], waiting["kind"]) == ("failed", "service")
    assert "plugin 'clock' of the config provides 'clock' and is failed" in waiting["remedy"]


def test_a_missing_session_log_is_switched_on_and_not_installed(
    diagnose: Diagnose, config: Callable[..., None]
) -> None:
    """The host itself provides it."""
    config(host="[host.log]\nenabled = false\n", wants="inject = ['sessions']\n" + FINE)
    assert "[host.log]" in only(diagnose())["remedy"]


def test_disabled_alone_is_all_well(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """It was wished for; it is told all the same."""
    config('id = "off"\nuse = "greet"\nenabled = false')
    found = only(diagnose())
    assert (found["kind"], found["severity"], found["config"]["line"]) == ("disabled", "note", 4)


def test_an_optional_plugin_that_fails_is_a_warning(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """The host starts, and yet something is wrong."""
    config('id = "bad"\nuse = "./bad.py"\noptional = true')
    Path("bad.py").write_text("def apply(ctx): 1 / 0\n")
    assert only(diagnose())["severity"] == "warning"


def test_a_child_that_fails_is_named(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """Though its parent is active, and the start would not have told."""
    config(parent="def inner(ctx): 1 / 0\ndef apply(ctx): ctx.plugin(inner)\n")
    found = only(diagnose())
    assert (found["kind"], found["plugin"], found["place"]["line"]) == ("failed", "inner", 1)


def test_a_plugin_that_never_finishes_loading(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """Is given up after the start's time, alone, and the others are looked at."""
    config(
        host="[host]\nstart_timeout = 0.2\n",
        slow="import trio\nasync def apply(ctx): await trio.sleep_forever()\n",
        bad="def apply(ctx): 1 / 0\n",
    )
    late, failed = diagnose()
    assert (late["kind"], late["plugin"]) == ("late", "slow")
    assert (failed["kind"], failed["plugin"]) == ("failed", "bad")


TOOL = '''
from dsh_runtime import tool

inject = ["tools"]


@tool
def greet(name: str) -> str:
    """Greet."""
    return name


def apply(ctx):
    {where}.tools.register(greet)
'''


def test_two_plugins_with_one_tool(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """The second one is named, and the first."""
    config(one=TOOL.format(where="ctx"), two=TOOL.format(where="ctx"))
    found = only(diagnose())
    assert (found["kind"], found["plugin"]) == ("shadowed", "two")
    assert "which plugin 'one' has registered already" in found["message"]


def test_a_tool_that_a_scope_hides(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """The one that is hidden is named, and the one that hides it."""
    config(one=TOOL.format(where="ctx"), two=TOOL.format(where="ctx.scope('agent').ctx"))
    found = only(diagnose())
    assert (found["kind"], found["severity"], found["plugin"]) == ("shadowed", "warning", "one")
    assert "hidden by that of plugin 'two'" in found["message"]


def test_an_optional_hook_that_nobody_declares(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """Passed over without a word by the host, and so told here."""
    source = "from dsh_hookspecs import hookimpl\n@hookimpl(optionalhook=True)\ndef tools_resul(exec): pass\n"
    config(opt=source)
    found = only(diagnose())
    assert (found["kind"], found["severity"], found["place"]["line"]) == ("hook", "warning", 2)
    assert found["remedy"] == "did you mean 'tools_result'?"


def test_two_wheels_with_one_entry_point(
    diagnose: Diagnose, config: Callable[..., None], wheel: Callable[..., None]
) -> None:
    """Used, it keeps the plugin from being loaded: an error, told once."""
    wheel("acme-one", "acme")
    wheel("acme-two", "acme")
    config('id = "acme"\nuse = "acme"')
    found = only(diagnose())
    assert (found["kind"], found["severity"]) == ("entry-point", "error")
    assert "acme-one 1.0 and acme-two 1.0" in found["message"]
    assert "uninstall one" in found["remedy"]


def test_two_wheels_with_one_entry_point_that_nobody_uses(
    diagnose: Diagnose, config: Callable[..., None], wheel: Callable[..., None]
) -> None:
    """A warning: whoever comes to use it would fail."""
    wheel("acme-one", "acme")
    wheel("acme-two", "acme")
    config()
    found = only(diagnose())
    assert (found["kind"], found["severity"]) == ("entry-point", "warning")


@pytest.mark.parametrize(
    ("requires", "says"),
    [
        ("dsh-hookspecs>=99", "requires dsh-hookspecs>=99, and dsh-hookspecs "),
        ("not-there-at-all>=1", "requires not-there-at-all>=1, which is not installed"),
    ],
)
def test_a_wheel_whose_requirements_are_not_met(
    diagnose: Diagnose, config: Callable[..., None], wheel: Callable[..., None], requires: str, says: str
) -> None:
    """It may work; that it was built for something else is told."""
    wheel("acme-odd", "acme", requires=requires)
    config('id = "acme"\nuse = "acme"')
    found = only(diagnose())
    assert (found["kind"], found["severity"], found["plugin"]) == ("version", "warning", "acme")
    assert says in found["message"]


@pytest.mark.parametrize("requires", ["dsh-hookspecs>=0.1", "not-there>=1; extra == 'more'", "x ?? 1"])
def test_requirements_that_are_met_or_do_not_count(
    diagnose: Diagnose, config: Callable[..., None], wheel: Callable[..., None], requires: str
) -> None:
    """Those of an extra do not count, nor what cannot be read."""
    wheel("acme-good", "acme", requires=requires)
    config('id = "acme"\nuse = "acme"')
    assert diagnose() == []


def test_a_presentation_that_code_mode_is_off_for(diagnose: Diagnose, config: Callable[..., None]) -> None:
    """What the host itself would refuse to start with."""
    config(host="[host]\npresentation = 'code'\ncode.enabled = false\n")
    assert only(diagnose())["kind"] == "host"


def test_a_log_that_cannot_be_opened(diagnose: Diagnose, config: Callable[..., None], tmp_path: Path) -> None:
    """The host would not start without its record."""
    (tmp_path / "file").write_text("")
    config(host='[host.log]\npath = "file/sessions.db"\n')
    found = only(diagnose())
    assert (found["kind"], found["plugin"], found["config"]["path"]) == ("host", "session-log", "host.log.path")


def test_pins_that_do_not_fit(diagnose: Diagnose, config: Callable[..., None], run: Run) -> None:
    """Code that is another one, and a plugin that is gone; each with its remedy."""
    config(one=FINE, two=FINE)
    assert run("plugins", "pin").code == 0
    Path("one.py").write_text(FINE + "# changed\n")
    text = Path("dsh.toml").read_text()
    Path("dsh.toml").write_text(text.replace('[[plugin]]\nid = "two"\nuse = "./two.py"\n', ""))
    assert sorted((found["kind"], found["config"]["path"]) for found in diagnose()) == [
        ("pin", "pins.one"),
        ("pin", "pins.two"),
    ]
