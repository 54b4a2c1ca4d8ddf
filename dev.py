"""Set up and run this repository with nothing but Python 3.11 or later.

    python3 dev.py demo          the tour: dsh-run demo
    python3 dev.py test [ARGS]   the tests, against the built wheels; ARGS go to pytest
    python3 dev.py lint          style, types and layering
    python3 dev.py run ARGS      dsh-run with ARGS
    python3 dev.py install       build all wheels and install them into the running environment (what tox does)

Everything but ``install`` works in ``.venv`` beside this file, which is made on first use and brought up to date when a
source has changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
WHEELS = ROOT / "dist"
CONSTRAINTS = ROOT / "constraints.txt"
TEST_REQUIREMENTS = ROOT / "tests" / "requirements.txt"


def projects() -> list[Path]:
    """The folders that each give one wheel: hook specifications first, then the runtime, then the plugins."""
    plugins = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
    return [ROOT / "hookspecs", ROOT, *plugins]


def run(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command, in the repository unless told otherwise; stop with its exit code if it fails."""
    code = subprocess.run([str(part) for part in command], cwd=folder, check=False).returncode
    if code:
        sys.exit(code)


def pip(python: Path, *arguments: str | Path) -> None:
    """Run pip of one environment, quietly and with the pinned versions."""
    quiet = ("--quiet", "--disable-pip-version-check")
    run(python, "-m", "pip", arguments[0], *quiet, "--constraint", CONSTRAINTS, *arguments[1:])


def build_wheels(python: Path) -> list[Path]:
    """Build every wheel into ``dist``; give the files."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    pip(python, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", WHEELS, *projects())
    return sorted(WHEELS.glob("*.whl"))


def install(python: Path) -> None:
    """Install the built wheels and what the tests need."""
    pip(python, "install", "hatchling", "-r", TEST_REQUIREMENTS)
    wheels = build_wheels(python)
    pip(python, "install", "--find-links", WHEELS, *wheels)
    # The same version may hold other code since the last time.
    pip(python, "install", "--no-deps", "--force-reinstall", *wheels)


def fingerprint() -> str:
    """What the environment was made from: every file that goes into a wheel, and the pins."""
    digest = hashlib.sha256(sys.version.encode())
    sources = [CONSTRAINTS, TEST_REQUIREMENTS]
    for project in projects():
        package = project / "dsh_runtime" if project == ROOT else project / "src"
        files = (*package.rglob("*.py"), *package.rglob("*.tmpl"))
        sources += [project / "pyproject.toml", *sorted(files)]
    for source in sources:
        digest.update(str(source.relative_to(ROOT)).encode() + source.read_bytes())
    return digest.hexdigest()


def prepared() -> Path:
    """The python of ``.venv``, brought up to date."""
    python = BIN / "python"
    stamp = VENV / "dsh-fingerprint"
    wanted = fingerprint()
    if not (stamp.exists() and stamp.read_text() == wanted):
        print("preparing .venv ...", file=sys.stderr)
        if not python.exists():
            venv.create(VENV, with_pip=True)
        install(python)
        stamp.write_text(wanted)
    return python


def test(arguments: list[str]) -> None:
    """Run the tests against the installed wheels."""
    prepared()
    os.environ["DSH_TEST_INSTALLED"] = "1"
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    run(BIN / "pytest", *arguments)


def lint() -> None:
    """Style, types and layering: all three are told, whichever fails."""
    python = prepared()
    checks = ([str(BIN / "ruff"), "check", "."], [str(python), "-m", "mypy"], [str(BIN / "lint-imports")])
    failed = [check for check in checks if subprocess.run(check, cwd=ROOT, check=False).returncode]
    if failed:
        sys.exit(1)


def main(arguments: list[str]) -> None:
    """Run one of the commands that the module's docstring lists."""
    if sys.version_info < (3, 11):  # noqa: UP036  # this is the one file that an older Python may be asked to run
        sys.exit(f"dsh-runtime needs Python 3.11 or later, not {sys.version.split()[0]}; run dev.py with a newer one")
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command == "demo":
        prepared()
        run(BIN / "dsh-run", "demo", folder=Path.cwd())
    elif command == "test":
        test(rest)
    elif command == "lint":
        lint()
    elif command == "run":
        prepared()
        run(BIN / "dsh-run", *rest, folder=Path.cwd())
    elif command == "install":
        install(Path(sys.executable))
    elif command in ("", "-h", "--help", "help"):
        print(__doc__)
    else:
        sys.exit(f"dev.py has no command {command!r}\n\n{__doc__}")


if __name__ == "__main__":
    main(sys.argv[1:])
