"""What ``dsh-run new`` writes works as it stands: its tests pass, its types hold, its wheel is found by a host."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the kit stands beside the tests, which are no package
from site_kit import Site

PROJECTS = {"acme-count": "tool", "acme_hours": "policy", "acme-notes": "service"}
SHOWN = {"acme-count": "acme_count", "acme_hours": "erase", "acme-notes": "look_up"}
"""A tool of each project's own config."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the projects stand."""
    return tmp_path_factory.mktemp("new")


@pytest.fixture(scope="module")
def site(folder: Path) -> Site:
    """Where the wheels of all three projects are installed."""
    site = Site(folder)
    for name, kind in PROJECTS.items():
        site.run("dsh-run", "new", name, "--kind", kind, cwd=folder)
    wheels = folder / "wheels"
    pip = (sys.executable, "-m", "pip")
    site.run(*pip, "wheel", "--wheel-dir", wheels, *(folder / name for name in PROJECTS), cwd=folder)
    site.run(*pip, "install", *sorted(wheels.glob("*.whl")), cwd=folder)
    return site


@pytest.mark.parametrize("name", PROJECTS)
def test_the_tests_of_a_new_project_pass_before_it_is_installed(tmp_path: Path, name: str) -> None:
    """They find the source by themselves."""
    site = Site(tmp_path)
    site.run("dsh-run", "new", name, "--kind", PROJECTS[name], cwd=tmp_path)
    printed = site.run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", cwd=tmp_path / name)
    assert " passed" in printed
    assert "warning" not in printed


@pytest.mark.parametrize("name", PROJECTS)
def test_the_plugin_of_a_new_project_is_found_by_its_installed_wheel(folder: Path, site: Site, name: str) -> None:
    """Its own config runs it."""
    project = folder / name
    assert site.run("dsh-run", "check", cwd=project).startswith("ok: dsh.toml: ")
    assert f"\n{SHOWN[name]} " in site.run("dsh-run", "tools", cwd=project)
    listed = site.run("dsh-run", "plugins", cwd=project)
    assert f"active  {name.replace('_', '-')} 0.1.0" in listed.replace("_", "-")


def test_a_new_policy_governs_and_a_new_service_serves(folder: Path, site: Site) -> None:
    """As their READMEs say."""
    would = site.run("dsh-run", "explain", "--would", "erase", "path=a.txt", cwd=folder / "acme_hours", code=1)
    assert "would be refused [DENIED] by plugin 'acme_hours'" in would
    assert site.run("dsh-run", "call", "look_up", "key=greeting", cwd=folder / "acme-notes") == "Hello!\n"


def test_the_code_of_new_projects_is_typed_in_full(folder: Path, site: Site, tmp_path: Path) -> None:
    """Source and tests, by ``mypy --strict``, as their own configs ask for."""
    for name in PROJECTS:
        site.run(sys.executable, "-m", "mypy", "--cache-dir", tmp_path, cwd=folder / name)


def test_a_new_wheel_says_that_it_is_typed_and_holds_nothing_but_its_package(folder: Path, site: Site) -> None:
    """No tests, no example, no config."""
    for name in PROJECTS:
        package = name.replace("-", "_")
        (wheel,) = (folder / "wheels").glob(f"{package}-0.1.0-*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        assert f"{package}/py.typed" in names
        assert {entry.partition("/")[0] for entry in names} == {package, f"{package}-0.1.0.dist-info"}
