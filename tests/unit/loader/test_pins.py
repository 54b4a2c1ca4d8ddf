"""Pins: what counts as a plugin's code, and that a host runs no other."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsh_runtime import AbortController, Host, HostError, ToolExecutionInput, open_host
from dsh_runtime.loader.content import Content, UnpinnableError, content_of, locate_source
from dsh_runtime.loader.discover import forget_installed
from dsh_runtime.loader.errors import ConfigError
from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.model import PluginRow
from dsh_runtime.loader.show import show_config

sys.path.insert(0, str(Path(__file__).parent))  # the kit stands beside the tests, which are no package
from wheel_kit import install_wheel

Write = Callable[[str, str], Path]
GATE = {
    "zz_gate/__init__.py": "import sys\nsys.zz_loaded = True\nfrom zz_gate._rules import rules\ndef apply(ctx): pass\n",
    "zz_gate/_rules.py": "rules = ()\n",
    "zz_gate/data.json": "{}\n",
}
OTHER = "sha256:" + "0" * 64


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An environment that is gone after the test, with everything that was imported from it."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    forget_installed()
    yield folder
    forget_installed()
    for name in [name for name in sys.modules if name.startswith("zz_")]:
        del sys.modules[name]
    if hasattr(sys, "zz_loaded"):
        del sys.zz_loaded
    importlib.invalidate_caches()


@pytest.fixture(autouse=True)
def _own_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def gate(site: Path) -> Path:
    """An installed wheel with a plugin."""
    install_wheel(site, "zz-gate", GATE, entry="zz_gate")
    return site


def content(use: str = "zz-gate", directory: Path = Path()) -> Content:
    return content_of(PluginRow(id="gate", use=use, directory=directory))


# What a plugin's code is.


def test_a_wheel_has_a_name_a_version_and_a_digest(gate: Path) -> None:
    found = content()
    assert (found.wheel, found.version, found.faults) == ("zz-gate", "1.0", ())
    assert found.digest.startswith("sha256:")
    assert len(found.digest) == len(OTHER)
    assert "zz_gate" not in sys.modules


def test_one_wheel_has_one_digest_wherever_and_however_it_is_installed(
    gate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the installer, the interpreter and tools leave there is not counted."""
    before = content()
    info = gate / "zz_gate-1.0.dist-info"
    (info / "REQUESTED").write_text("")
    (info / "INSTALLER").write_text("another\n")
    (gate / "zz_gate" / "__pycache__").mkdir()
    (gate / "zz_gate" / "__pycache__" / "_rules.cpython-311.pyc").write_bytes(b"x")
    (gate / "zz_gate" / "state.db").write_bytes(b"written while it ran")
    assert content() == before
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    install_wheel(elsewhere, "zz-gate", GATE, entry="zz_gate")
    monkeypatch.setattr(sys, "path", [str(elsewhere), *sys.path])
    forget_installed()
    assert content() == before


@pytest.mark.parametrize("path", ["zz_gate/_rules.py", "zz_gate/data.json", "zz_gate-1.0.dist-info/entry_points.txt"])
def test_a_file_that_was_changed_where_it_is_installed_is_named(gate: Path, path: str) -> None:
    before = content()
    with (gate / path).open("a") as file:
        file.write("# changed\n")
    assert content().digest != before.digest
    assert content().faults == (path,)


def test_a_file_that_is_gone_is_named(gate: Path) -> None:
    (gate / "zz_gate/_rules.py").unlink()
    assert content().faults == ("zz_gate/_rules.py",)


@pytest.mark.parametrize("path", ["zz_gate/_rules.abi3.so", "zz_gate/_rules.pyc", "zz_gate/sub/extra.py"])
def test_a_module_that_did_not_come_with_the_wheel_is_named(gate: Path, path: str) -> None:
    """Python may import it in the place of one that did."""
    before = content()
    (gate / path).parent.mkdir(exist_ok=True)
    (gate / path).write_text("")
    assert content().digest != before.digest
    assert content().faults == (path,)


def test_a_wheel_may_bring_bytecode_alone(site: Path) -> None:
    """What it lists is its own, and counts."""
    install_wheel(site, "zz-gate", {"zz_gate/__init__.py": "", "zz_gate/_rules.pyc": "x"}, entry="zz_gate")
    before = content()
    assert before.faults == ()
    (site / "zz_gate/_rules.pyc").write_text("y")
    assert content().faults == ("zz_gate/_rules.pyc",)


def test_a_record_that_was_made_to_fit_a_change_has_another_digest(gate: Path) -> None:
    """Whoever changes the files and the RECORD with them is seen by the pin."""
    before = content()
    install_wheel(gate, "zz-gate", {**GATE, "zz_gate/_rules.py": "rules = None\n"}, entry="zz_gate")
    assert content().faults == ()
    assert content().digest != before.digest


def test_an_editable_install_is_its_source_package(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "src"
    install_wheel(site, "zz-gate", GATE, entry="zz_gate", editable=source)
    monkeypatch.syspath_prepend(source)
    before = content()
    assert (before.wheel, before.version, before.faults) == ("zz-gate", "1.0", ())
    (source / "zz_gate" / "__pycache__").mkdir()
    (source / "zz_gate" / "__pycache__" / "x.pyc").write_text("")
    (source / "zz_gate" / ".mypy_cache").mkdir()
    (source / "zz_gate" / ".mypy_cache" / "x.json").write_text("")
    (source / "test_gate.py").write_text("")
    assert content() == before
    (source / "zz_gate" / "_rules.py").write_text("rules = None\n")
    assert content().digest != before.digest


def test_code_that_stands_in_front_of_a_wheel_is_what_counts(
    gate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the wheel, which would not be imported."""
    before = content()
    shadow = tmp_path / "shadow"
    (shadow / "zz_gate").mkdir(parents=True)
    (shadow / "zz_gate" / "__init__.py").write_text("def apply(ctx): pass\n")
    monkeypatch.syspath_prepend(shadow)
    assert content().digest != before.digest


def test_a_module_named_in_use_belongs_to_the_wheel_that_brought_it(gate: Path) -> None:
    assert content("zz_gate:apply") == content("zz-gate")


def test_a_module_of_no_wheel_is_its_source(site: Path) -> None:
    (site / "zz_alone.py").write_text("def apply(ctx): pass\n")
    before = content("zz_alone")
    assert (before.wheel, before.version) == (None, None)
    (site / "zz_alone.py").write_text("def apply(ctx): return None\n")
    assert content("zz_alone").digest != before.digest


def test_a_file_is_the_file(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text("def apply(ctx): pass\n")
    before = content("./notes.py:apply", tmp_path)
    assert (before.wheel, before.version) == (None, None)
    (tmp_path / "notes.py").write_text("def apply(ctx): pass \n")
    assert content("./notes.py:apply", tmp_path).digest != before.digest
    with pytest.raises(UnpinnableError, match=r"nope\.py' does not exist"):
        content("./nope.py", tmp_path)


def test_a_module_beneath_namespace_packages_is_found_without_running_anything(site: Path) -> None:
    (site / "zz_space" / "gate").mkdir(parents=True)
    (site / "zz_space" / "gate" / "__init__.py").write_text("raise SystemExit")
    (site / "zz_space" / "limit.py").write_text("raise SystemExit")
    assert locate_source("zz_space.gate") == site / "zz_space" / "gate"
    assert locate_source("zz_space.gate.inner") == site / "zz_space" / "gate"
    assert locate_source("zz_space.limit") == site / "zz_space" / "limit.py"
    with pytest.raises(UnpinnableError, match=r"'zz_space\.other' is no file"):
        locate_source("zz_space.other")


def test_two_wheels_of_one_namespace_are_not_taken_for_one_another(site: Path) -> None:
    install_wheel(site, "zz-a", {"zz_space/a/__init__.py": "x = 1\n"}, entry="zz_space.a")
    before = content("zz-a")
    install_wheel(site, "zz-b", {"zz_space/b/__init__.py": "x = 1\n", "zz_space/c.py": ""}, entry="zz_space.b")
    forget_installed()
    assert content("zz-a") == before
    assert content("zz-b").faults == ()


def test_a_module_that_is_built_in_cannot_be_pinned() -> None:
    with pytest.raises(UnpinnableError, match="the code of the module 'sys' is no file"):
        content("sys")


# What a host with pins does.


def config(write: Write, *, pins: str, rows: str = '[[plugin]]\nid = "gate"\nuse = "zz-gate"\n') -> Path:
    return write("dsh.toml", f"{rows}\n[pins]\n{pins}\n")


def pin_of(use: str = "zz-gate", directory: Path = Path()) -> str:
    found = content(use, directory)
    return f'{{ wheel = "{found.wheel}", version = "{found.version}", digest = "{found.digest}" }}'


async def refusal(file: Path) -> str:
    """Why a host does not start."""
    with pytest.raises(HostError) as caught:
        async with open_host(file):
            pytest.fail("it has started")
    return str(caught.value)


async def test_a_host_runs_what_is_pinned(gate: Path, write: Write) -> None:
    async with open_host(config(write, pins=f"gate = {pin_of()}")) as host:
        assert [plugin.fiber.state for plugin in host.plugins if plugin.row] == ["active"]  # type: ignore[union-attr]


async def test_a_changed_wheel_is_refused_before_it_is_imported(gate: Path, write: Write) -> None:
    """With what was expected and found, the file, and what to do."""
    pinned = content()
    file = config(write, pins=f"gate = {pin_of()}")
    (gate / "zz_gate/_rules.py").write_text("rules = None\n")
    assert await refusal(file) == (
        f"{file}:6: pins.gate: plugin 'gate' is not what was pinned: expected zz-gate 1.0 {pinned.digest[:23]}…, "
        f"found zz-gate 1.0 {content().digest[:23]}…, changed where it is installed: zz_gate/_rules.py; "
        "install the wheel again that was pinned"
    )
    assert not hasattr(sys, "zz_loaded")


async def test_another_version_is_refused(gate: Path, write: Write) -> None:
    file = config(write, pins=f"gate = {pin_of()}")
    (gate / "zz_gate-1.0.dist-info").rename(gate / "gone")
    install_wheel(gate, "zz-gate", GATE, entry="zz_gate", version="1.1")
    forget_installed()
    assert "expected zz-gate 1.0 sha256:" in (said := await refusal(file))
    assert "found zz-gate 1.1 sha256:" in said
    assert said.endswith("install what was pinned, or look at the change and run 'dsh-run plugins pin'")


async def test_a_wheel_that_was_changed_is_refused_though_its_digest_is_pinned(gate: Path, write: Write) -> None:
    """Such a pin can only have been written by hand."""
    (gate / "zz_gate/_rules.py").write_text("rules = None\n")
    assert "changed where it is installed" in await refusal(config(write, pins=f"gate = {pin_of()}"))


async def test_a_plugin_without_a_pin_is_refused_where_others_have_one(gate: Path, write: Write) -> None:
    write("notes.py", "import sys\nsys.zz_loaded = True\ndef apply(ctx): pass\n")
    rows = '[[plugin]]\nid = "gate"\nuse = "zz-gate"\n[[plugin]]\nid = "notes"\nuse = "./notes.py"\n'
    file = config(write, pins=f"gate = {pin_of()}", rows=rows)
    assert await refusal(file) == (
        f"{file}:4: plugin[1]: plugin 'notes' has no pin, and this config has [pins]; "
        "look at it and run 'dsh-run plugins pin'"
    )
    assert not hasattr(sys, "zz_loaded")


async def test_an_empty_table_of_pins_lets_nothing_run(gate: Path, write: Write) -> None:
    assert "plugin 'gate' has no pin" in await refusal(config(write, pins=""))


async def test_a_pinned_plugin_that_the_config_lost_is_missed(gate: Path, write: Write) -> None:
    file = config(write, pins=f"gate = {pin_of()}", rows="")
    assert await refusal(file) == (
        f"{file}:3: pins.gate: plugin 'gate' is pinned, and the config has none; "
        "put it back, or run 'dsh-run plugins pin'"
    )


async def test_a_pinned_plugin_that_is_not_installed_is_missed(site: Path, write: Write) -> None:
    file = config(write, pins=f'gate = {{ digest = "{OTHER}" }}')
    assert "plugin 'gate' (use = 'zz-gate') is pinned: no installed plugin" in await refusal(file)


async def test_a_pinned_plugin_that_is_switched_off_is_not_looked_at(site: Path, write: Write) -> None:
    """The config says so in its place."""
    rows = '[[plugin]]\nid = "gate"\nuse = "zz-gate"\nenabled = false\n'
    async with open_host(config(write, pins=f'gate = {{ digest = "{OTHER}" }}', rows=rows)):
        pass


async def test_an_optional_plugin_that_has_changed_is_left_out_alone(gate: Path, write: Write) -> None:
    """Its code does not run either."""
    rows = '[[plugin]]\nid = "gate"\nuse = "zz-gate"\noptional = true\n'
    async with open_host(config(write, pins=f'gate = {{ digest = "{OTHER}" }}', rows=rows)) as host:
        (loaded,) = [plugin for plugin in host.plugins if plugin.row]
        assert loaded.fiber is None
        assert "is not what was pinned" in str(loaded.error)
    assert not hasattr(sys, "zz_loaded")


async def test_a_host_that_only_looks_runs_no_changed_code(gate: Path, write: Write) -> None:
    """As ``dsh-run plugins`` does."""
    async with open_host(config(write, pins=f'gate = {{ digest = "{OTHER}" }}'), strict=False) as host:
        assert "is not what was pinned" in str(host.plugins[-1].error)
    assert not hasattr(sys, "zz_loaded")


async def test_pins_of_several_files_replace_one_another_by_id(gate: Path, write: Write) -> None:
    config(write, pins=f'gate = {{ digest = "{OTHER}", version = "0.9" }}').rename(gate.parent / "base.toml")
    file = write("dsh.toml", f'include = ["base.toml"]\n[pins]\ngate = {{ digest = "{content().digest}" }}\n')
    async with open_host(file) as host:
        pin = host.config.pins["gate"]  # type: ignore[index]
        assert (pin.digest, pin.version) == (content().digest, None)


@pytest.mark.parametrize(
    ("pins", "said"),
    [
        ("pins = 3", "'pins' is no table"),
        ("[pins]\ngate = 3", "pins.gate: a pin is a table"),
        ('[pins]\n"a b" = {}', "no plugin can have the id 'a b'"),
        ("[pins.gate]", "pins.gate.digest: 'digest' of a pin must be 'sha256:' and 64 hexadecimal digits"),
        ('[pins.gate]\ndigest = "md5:00"', "'digest' of a pin must be"),
        (f'[pins.gate]\ndigest = "{OTHER}"\nversion = 1', "'version' of a pin must be a text"),
        ('[pins.gate]\ndigest = "${file:digest.txt}"', "a text that stands there in full"),
        (f'[pins.gate]\ndigest = "{OTHER}"\nweel = "x"', "a pin has no key 'weel'; did you mean 'wheel'?"),
    ],
)
def test_what_is_no_pin_is_told_with_its_place(write: Write, pins: str, said: str) -> None:
    write("digest.txt", OTHER)
    with pytest.raises(ConfigError) as caught:
        load_config(write("dsh.toml", pins + "\n"))
    (problem,) = caught.value.problems
    assert said in str(problem)
    assert problem.location is not None


def test_config_show_shows_the_pins(gate: Path, write: Write) -> None:
    shown = [str(value) for value in show_config(load_config(config(write, pins=f"gate = {pin_of()}")))]
    assert any(line.startswith('pins.gate.version = "1.0"  # ') for line in shown)
    assert not any("pins" in str(value) for value in show_config(load_config({})))


def test_pins_cost_nothing_where_there_are_none() -> None:
    """Neither hashing nor ``importlib.metadata`` is imported for them."""
    import subprocess

    program = (
        "import sys, trio\nfrom dsh_runtime import open_host\n"
        "async def main():\n    async with open_host({'plugin': [{'id': 'greet', 'use': 'greet'}]}): pass\n"
        "trio.run(main)\nprint([n for n in sys.modules if n.endswith(('.content', '.pin', '.pinned'))])\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


NOTES = """\
from dsh_runtime import tool

inject = ["tools"]

@tool
async def version() -> int:
    \"\"\"Say which version this is.\"\"\"
    return 1

def apply(ctx):
    ctx.tools.register(version)
"""


async def test_a_reload_brings_no_version_that_is_not_pinned(write: Write) -> None:
    """The old one stays until the config pins the new one."""
    rows = '[[plugin]]\nid = "notes"\nuse = "./notes.py"\n'
    notes = write("notes.py", NOTES)
    folder = notes.parent
    file = config(write, pins=f'notes = {{ digest = "{content("./notes.py", folder).digest}" }}', rows=rows)
    async with open_host(file) as host:
        write("notes.py", NOTES.replace("return 1", "return 2"))
        report = await host.reload.changed([notes])
        assert [kept.id for kept in report.kept] == ["notes"]
        assert "is not what was pinned" in str(report.kept[0].problems[0])
        assert await version_of(host) == 1
        write("dsh.toml", "[pins]\n" + file.read_text().partition("[pins]\n")[2])
        assert "is pinned, and the config has none" in str((await host.reload.changed([file])).problems[0])
        assert await version_of(host) == 1
        config(write, pins=f'notes = {{ digest = "{content("./notes.py", folder).digest}" }}', rows=rows)
        report = await host.reload.changed([file, notes])
        assert report.ok, report.lines()
        await host.reload.rest()
        assert await version_of(host) == 2


async def version_of(host: Host) -> object:
    """What the plugin of the test says that it is."""
    result = await host.ctx.tools.execute(ToolExecutionInput("1", "version", {}, AbortController().signal))
    return result.value
