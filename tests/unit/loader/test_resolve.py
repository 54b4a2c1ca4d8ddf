"""A row's ``use`` becomes an imported object, or an error that says which, why and what to do."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from dsh_runtime.loader import discover
from dsh_runtime.loader.errors import Location, PluginLoadError
from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.model import PluginRow
from dsh_runtime.loader.resolve import file_module_name, resolve_plugin
from dsh_runtime.loader.target import BadUseError, FileTarget, ModuleTarget, NameTarget, Target, parse_use


@pytest.fixture(autouse=True)
def _clean_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    discover.forget_installed()
    yield
    discover.forget_installed()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def row(tmp_path: Path, use: str, row_id: str = "gate") -> PluginRow:
    return PluginRow(id=row_id, use=use, directory=tmp_path)


def refusal(plugin: PluginRow) -> PluginLoadError:
    with pytest.raises(PluginLoadError) as caught:
        resolve_plugin(plugin)
    return caught.value


# --- reading `use` ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "target"),
    [
        ("audit", NameTarget("audit")),
        ("my-plugin.v2", NameTarget("my-plugin.v2")),
        ("acme.audit", NameTarget("acme.audit")),
        ("acme.audit:Plugin", ModuleTarget("acme.audit", "Plugin")),
        ("acme:a.b", ModuleTarget("acme", "a.b")),
        ("acme:", ModuleTarget("acme")),
        ("./gate.py", FileTarget(Path("/etc/dsh/gate.py"))),
        ("../gate.py:Plugin", FileTarget(Path("/etc/dsh/../gate.py"), "Plugin")),
        ("/opt/gate.py", FileTarget(Path("/opt/gate.py"))),
        ("sub/gate.py", FileTarget(Path("/etc/dsh/sub/gate.py"))),
    ],
)
def test_the_spelling_says_what_is_meant(use: str, target: Target) -> None:
    assert parse_use(use, Path("/etc/dsh")) == target


@pytest.mark.parametrize(
    "use", ["", "./gate", "/opt/gate", "a b", "a:b:c", "a:1", "a;b", "a\nb", "x" * 2000, "__import__('os')", "a-b:c"]
)
def test_a_spelling_that_means_nothing_is_refused(use: str) -> None:
    with pytest.raises(BadUseError):
        parse_use(use, Path())


# --- modules and entry points -------------------------------------------------------------------------------------


def test_a_module_and_an_attribute_of_it(tmp_path: Path) -> None:
    (tmp_path / "dsh_t_pkg").mkdir()
    (tmp_path / "dsh_t_pkg/__init__.py").write_text("")
    (tmp_path / "dsh_t_pkg/mod.py").write_text("class Plugin:\n    class Inner: pass\n")
    module = importlib.import_module("dsh_t_pkg.mod")
    assert resolve_plugin(row(tmp_path, "dsh_t_pkg.mod")) is module
    assert resolve_plugin(row(tmp_path, "dsh_t_pkg.mod:Plugin")) is module.Plugin
    assert resolve_plugin(row(tmp_path, "dsh_t_pkg.mod:Plugin.Inner")) is vars(module.Plugin)["Inner"]


def test_an_entry_point_goes_before_a_module_of_the_same_name(tmp_path: Path) -> None:
    info = tmp_path / "acme-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[dsh.plugins]\ndsh_t_name = dsh_t_other:plugin\n")
    (tmp_path / "dsh_t_name.py").write_text("raise SystemExit")
    (tmp_path / "dsh_t_other.py").write_text("plugin = 'the entry point'")
    assert resolve_plugin(row(tmp_path, "dsh_t_name")) == "the entry point"


def test_entry_points_are_not_looked_at_for_modules_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsh_runtime.loader.resolve.find_installed", lambda name: pytest.fail("scanned"))
    (tmp_path / "gate.py").write_text("")
    resolve_plugin(row(tmp_path, "./gate.py"))
    resolve_plugin(row(tmp_path, "json:loads"))


def test_a_name_that_nobody_has_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    info = tmp_path / "acme-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[dsh.plugins]\naudit-log = x\n")
    message = str(refusal(row(tmp_path, "audit-lgo")))
    assert message == (
        "use: plugin 'gate' (use = 'audit-lgo'): no installed plugin or module is called 'audit-lgo'; "
        "install it, or correct 'use'; did you mean 'audit-log'?"
    )


def test_a_name_that_two_distributions_claim_is_refused(tmp_path: Path) -> None:
    for name in ("acme", "evil"):
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_text(f"[dsh.plugins]\ndsh_t = {name}\n")
    assert "claimed by acme 1 and evil 1" in str(refusal(row(tmp_path, "dsh_t")))


def test_a_missing_module_is_told_from_one_that_misses_another(tmp_path: Path) -> None:
    (tmp_path / "dsh_t_mod.py").write_text("\nimport dsh_t_nothing\n")
    assert "module 'dsh_t_none.x' cannot be found" in str(refusal(row(tmp_path, "dsh_t_none.x:y")))
    message = str(refusal(row(tmp_path, "dsh_t_mod:x")))
    assert f"raised ModuleNotFoundError: No module named 'dsh_t_nothing' at {tmp_path / 'dsh_t_mod.py'}:2" in message


def test_a_missing_attribute_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    assert "'json' has no attribute 'laods'; did you mean 'loads'?" in str(refusal(row(tmp_path, "json:laods")))


# --- files --------------------------------------------------------------------------------------------------------


def test_a_file_is_a_module_named_after_the_row(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text("class Plugin: pass\nthing = Plugin()\n")
    module = resolve_plugin(row(tmp_path, "./gate.py", "my.gate-1"))
    assert isinstance(module, ModuleType)
    assert module.__name__ == file_module_name("my.gate-1")
    assert sys.modules[module.__name__] is module
    assert module.__file__ == str(tmp_path / "gate.py")
    assert isinstance(pickle.loads(pickle.dumps(module.thing)), module.Plugin)
    assert resolve_plugin(row(tmp_path, "./gate.py:Plugin")) is not module.Plugin


def test_two_rows_of_one_file_are_two_modules(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text("")
    assert resolve_plugin(row(tmp_path, "./gate.py", "a-b")) is not resolve_plugin(row(tmp_path, "./gate.py", "a.b"))


def test_an_edit_within_the_same_second_is_seen_and_no_bytecode_is_left(tmp_path: Path) -> None:
    file = tmp_path / "gate.py"
    for value in ("1", "2"):
        file.write_text(f"value = {value}")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        assert vars(resolve_plugin(row(tmp_path, "./gate.py")))["value"] == int(value)
    assert not (tmp_path / "__pycache__").exists()


def test_a_missing_file_is_refused_by_its_full_path(tmp_path: Path) -> None:
    assert f"file '{tmp_path / 'gate.py'}' does not exist" in str(refusal(row(tmp_path, "./gate.py")))


def test_a_file_that_raises_leaves_no_module_and_keeps_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text("def f():\n    raise ValueError('boom')\nf()\n")
    error = refusal(row(tmp_path, "./gate.py"))
    assert f"plugin 'gate' (use = './gate.py'): raised ValueError: boom at {tmp_path / 'gate.py'}:2" in str(error)
    assert isinstance(error.__cause__, ValueError)
    assert error.__cause__.__traceback__ is not None
    assert file_module_name("gate") not in sys.modules


def test_a_failed_second_import_leaves_the_first_module_in_place(tmp_path: Path) -> None:
    file = tmp_path / "gate.py"
    file.write_text("")
    module = resolve_plugin(row(tmp_path, "./gate.py"))
    file.write_text("1/0")
    refusal(row(tmp_path, "./gate.py"))
    assert sys.modules[file_module_name("gate")] is module


def test_the_place_named_is_the_plugins_and_not_the_library_it_called(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text("import json\njson.loads('{')\n")
    assert f"at {tmp_path / 'gate.py'}:2" in str(refusal(row(tmp_path, "./gate.py")))


def test_a_syntax_error_is_named_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text("a = 1\nb = = 2\n")
    message = str(refusal(row(tmp_path, "./gate.py")))
    assert "raised SyntaxError: invalid syntax" in message
    assert f" at {tmp_path / 'gate.py'}:2" in message


def test_an_exit_on_import_is_an_error_and_an_interrupt_passes(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text("raise SystemExit(0)")
    assert "raised SystemExit: 0" in str(refusal(row(tmp_path, "./gate.py")))
    (tmp_path / "gate.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        resolve_plugin(row(tmp_path, "./gate.py"))
    assert file_module_name("gate") not in sys.modules


def test_a_failure_stands_where_the_config_says_use(tmp_path: Path) -> None:
    (tmp_path / "dsh.toml").write_text('[[plugin]]\nid = "a"\nuse = "json"\n[[plugin]]\nid = "b"\nuse = "./nope.py"\n')
    (problem,) = refusal(load_config(tmp_path / "dsh.toml").rows[1]).problems
    assert problem.path == ("plugin", 1, "use")
    assert problem.location == Location(str(tmp_path / "dsh.toml"), 6)
