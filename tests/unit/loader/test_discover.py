"""Installed plugins are listed without being imported."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsh_runtime.loader import discover
from dsh_runtime.loader.discover import AmbiguousNameError, InstalledPlugin, find_installed, installed_plugins


def install(site: Path, name: str, version: str, entry_points: str, metadata: bool = True) -> Path:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(entry_points)
    if metadata:
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: not this\n")
    return info


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    library = [path for path in sys.path if path.startswith(sys.base_prefix) and "site-packages" not in path]
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), str(tmp_path / "missing"), *library])
    discover.forget_installed()
    yield tmp_path / "site"
    discover.forget_installed()


def test_entry_points_of_the_group_are_listed_by_name(site: Path) -> None:
    install(
        site,
        "acme-audit",
        "1.2",
        "[console_scripts]\nx = y:z\n[dsh.plugins]\n# no\nlog = acme.log:Plugin [extra]\naudit=acme\n",
    )
    install(site, "other", "3", "[dsh.plugins.more]\nx = y\n")
    assert installed_plugins() == (
        InstalledPlugin("audit", "acme", "acme-audit", "1.2"),
        InstalledPlugin("log", "acme.log:Plugin", "acme-audit", "1.2"),
    )


def test_nothing_installed_is_imported(site: Path) -> None:
    install(site, "acme", "1", "[dsh.plugins]\nboom = dsh_test_boom\n")
    (site / "dsh_test_boom.py").write_text("raise SystemExit('imported')")
    assert find_installed("boom") is not None
    assert "dsh_test_boom" not in sys.modules


def test_a_known_name_is_found_without_the_slow_scan(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "acme", "1", "[dsh.plugins]\naudit = acme\n")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: pytest.fail("scanned"))
    found = find_installed("audit")
    assert found is not None
    assert found.value == "acme"


def test_an_unknown_name_is_not_found(site: Path) -> None:
    install(site, "acme", "1", "[dsh.plugins]\naudit = acme\n")
    assert find_installed("audits") is None


def test_two_distributions_with_one_name_are_refused_when_it_is_used(site: Path) -> None:
    install(site, "acme", "1", "[dsh.plugins]\naudit = acme\n")
    install(site, "evil", "2", "[dsh.plugins]\naudit = evil\nother = evil\n")
    assert find_installed("other") is not None
    with pytest.raises(AmbiguousNameError, match="claimed by acme 1 and evil 2; uninstall one"):
        find_installed("audit")


def test_the_first_copy_of_a_distribution_on_the_path_counts(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "Acme.Audit", "2", "[dsh.plugins]\naudit = new\n")
    install(site.parent / "later", "acme-audit", "1", "[dsh.plugins]\naudit = old\nremoved = old\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site.parent / "later")])
    assert [plugin.value for plugin in installed_plugins()] == ["new"]


def test_a_plugin_inside_a_zip_file_is_found_too(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = site.parent / "plugins.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped-1.dist-info/entry_points.txt", "[dsh.plugins]\nzipped = z\n")
        file.writestr("zipped-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: zipped\nVersion: 1\n")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    assert find_installed("zipped") == InstalledPlugin("zipped", "z", "zipped", "1")


def test_each_scan_runs_once(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "acme", "1", "[dsh.plugins]\naudit = acme\n")
    find_installed("audit")
    monkeypatch.setattr(discover, "_metadata_directories", lambda path: pytest.fail("scanned again"))
    find_installed("audit")


def test_a_distribution_without_metadata_is_known_by_its_directory(site: Path) -> None:
    install(site, "acme", "1.5", "[dsh.plugins]\naudit = acme\n", metadata=False)
    found = find_installed("audit")
    assert found is not None
    assert (found.distribution, found.version) == ("acme", "1.5")
