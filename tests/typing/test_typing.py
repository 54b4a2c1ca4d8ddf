"""What type checkers say of code that uses the public names.

Each file of ``cases`` is checked by ``mypy --strict``, and by pyright where it is installed. A comment ``# E: text``
stands where an error is expected; its text is part of mypy's message. Nowhere else may there be one. pyright words its
messages its own way, so of it only the lines are compared.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import pytest

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))
#: pyright does not narrow by a member that is plainly true or false, and widens a type variable to a union.
FOR_MYPY_ALONE = ("results_by_truth", "wrong_values")
Found: TypeAlias = dict[tuple[str, int], str]


def expected(case: Path) -> Found:
    """The lines at which a case expects an error, and what it is about."""
    lines = enumerate(case.read_text("utf-8").splitlines(), start=1)
    return {(case.name, number): said[1] for number, line in lines if (said := re.search(r"# E: (.+)$", line))}


@pytest.fixture(scope="module")
def found_by_mypy(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What mypy finds in all cases."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("mypy")
    (folder / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    command = [sys.executable, "-m", "mypy", "--no-pretty", "--cache-dir", str(folder / "cache"), *map(str, CASES)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    found: Found = {}
    for path, line, message in re.findall(r"^(.+?):(\d+): error: (.*)$", ran.stdout, re.MULTILINE):
        key = (Path(path).name, int(line))
        found[key] = f"{found[key]}\n{message}" if key in found else message
    return found


@pytest.fixture(scope="module")
def found_by_pyright() -> Found:
    """What pyright finds in all cases."""
    program = shutil.which("pyright", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("pyright is not installed")
    command = [program, "--outputjson", "--pythonpath", sys.executable, *map(str, CASES)]
    ran = subprocess.run(command, cwd=CASES[0].parent, capture_output=True, text=True, check=False)
    try:
        report = json.loads(ran.stdout)
    except ValueError:
        pytest.skip(f"pyright does not run here: {(ran.stdout + ran.stderr).strip()[:200]}")
    return {
        (Path(problem["file"]).name, problem["range"]["start"]["line"] + 1): problem["message"]
        for problem in report["generalDiagnostics"]
        if problem["severity"] == "error"
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_mypy_finds_what_is_wrong_and_nothing_else(case: Path, found_by_mypy: Found) -> None:
    """Line by line, with what the message is about."""
    wanted = expected(case)
    found = {key: message for key, message in found_by_mypy.items() if key[0] == case.name}
    assert {key: message for key, message in found.items() if key not in wanted} == {}
    assert {key: (text, found.get(key)) for key, text in wanted.items() if text not in found.get(key, "")} == {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_pyright_finds_what_is_wrong_and_nothing_else(case: Path, found_by_pyright: Found) -> None:
    """Line by line."""
    if case.stem in FOR_MYPY_ALONE:
        pytest.skip("pyright does not see it")
    found = {key: message for key, message in found_by_pyright.items() if key[0] == case.name}
    assert found.keys() == expected(case).keys(), found
