"""Wheels in, a governed call out: everything is built, installed into an empty environment, and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = [ROOT / "hookspecs", ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]

PLUGIN = {
    "pyproject.toml": """
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"

        [project]
        name = "acme-shout"
        version = "1.2.3"
        dependencies = ["dsh-runtime"]

        [project.entry-points."dsh.plugins"]
        shout = "acme_shout"
        """,
    "acme_shout.py": """
        from dsh_runtime import tool

        name = "shout"
        inject = ["tools"]

        @tool
        def shout(text: str) -> str:
            \"\"\"Say it louder.\"\"\"
            return text.upper()

        def apply(ctx):
            ctx.tools.register(shout)
        """,
    "dsh.toml": """
        [[plugin]]
        id = "gate"
        use = "permission-gate"

        [plugin.config]
        default = "allow"

        [[plugin.config.rules]]
        action = "deny"
        tools = ["shout"]
        arguments = { text = ["*secret*"] }

        [[plugin]]
        id = "shout"
        use = "shout"
        """,
}


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    parts = [str(part) for part in command]
    return subprocess.run(parts, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin's project, written here."""
    folder = tmp_path_factory.mktemp("acme")
    for name, text in PLUGIN.items():
        (folder / name).write_text(textwrap.dedent(text))
    return folder


@pytest.fixture(scope="module")
def environment(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts' folder of an environment into which all wheels and the plugin's have been installed."""
    wheels = tmp_path_factory.mktemp("wheels")
    pip = (sys.executable, "-m", "pip")
    quiet = ("--quiet", "--disable-pip-version-check")
    built = run(
        *pip, "wheel", *quiet, "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, *PROJECTS, project,
        cwd=wheels,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=True)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    constraints = ROOT / "constraints.txt"
    files = sorted(wheels.glob("*.whl"))
    assert len(files) == len(PROJECTS) + 1
    installed = run(
        scripts / "python", "-m", "pip", "install", *quiet, "--constraint", constraints, "--find-links", wheels, *files,
        cwd=wheels,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    return scripts


def test_a_plugin_written_outside_is_called_through_dsh_run(environment: Path, project: Path) -> None:
    """An installed wheel's tool runs when the config names it."""
    done = run(environment / "dsh-run", "--output", "json", "call", "shout", "text=hello", cwd=project)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["value"] == "HELLO"


def test_the_gate_of_another_wheel_denies_it(environment: Path, project: Path) -> None:
    """Policy from one wheel governs the tool of another."""
    done = run(environment / "dsh-run", "--output", "json", "call", "shout", "text=a secret", cwd=project)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "DENIED"


def test_what_is_merely_installed_is_listed_and_not_imported(environment: Path, project: Path) -> None:
    """Installed plugins that no config names show up as not enabled."""
    done = run(environment / "dsh-run", "plugins", cwd=project)
    assert done.returncode == 0, done.stderr
    for name in ("shout", "permission-gate", "fs", "greet", "timeout", "mcp-server"):
        assert name in done.stdout


def test_the_module_runs_like_the_script(environment: Path, project: Path) -> None:
    """``python -m dsh_runtime`` is ``dsh-run``."""
    script = run(environment / "dsh-run", "--version", cwd=project)
    module = run(environment / "python", "-m", "dsh_runtime", "--version", cwd=project)
    assert (script.returncode, module.returncode) == (0, 0)
    assert script.stdout == module.stdout


@pytest.mark.parametrize("kind", ["tool", "policy", "service"])
def test_the_wheel_carries_the_templates_of_new_projects(environment: Path, tmp_path: Path, kind: str) -> None:
    """A project comes out, dot files included."""
    done = run(environment / "dsh-run", "new", "fresh", "--kind", kind, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert written >= {"fresh/.gitignore", "fresh/pyproject.toml", "fresh/src/fresh/py.typed"}
    assert written >= {"fresh/dsh.toml", "fresh/README.md", "fresh/src/fresh/__init__.py", "fresh/tests/test_fresh.py"}


def test_no_wheel_carries_another_wheels_files(environment: Path) -> None:
    """Each distribution installs its own packages only."""
    script = (
        "from importlib.metadata import distributions\n"
        "seen = {}\n"
        "for d in distributions():\n"
        "    for f in d.files or ():\n"
        "        if 'dsh_' in f.parts[0] and not f.parts[0].endswith('.dist-info'):\n"
        "            assert seen.setdefault(str(f), d.name) == d.name, (f, d.name, seen[str(f)])\n"
        "print(len(seen))\n"
    )
    done = run(environment / "python", "-c", script, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50
