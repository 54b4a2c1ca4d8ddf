"""The fixtures that pytest finds, with the extra and without it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

WITH = """
    import dsh_plugin_greet
    import pytest
    import trio

    from dsh_runtime.testing import assert_ok


    @pytest.mark.trio
    async def test_greets(dsh_trial, virtual_clock):
        async with dsh_trial(dsh_plugin_greet) as trial:
            assert_ok(await trial.call("greet", {"name": "Ada"}), "Hello, Ada!")
            await trio.sleep(86_400)
"""
WITHOUT = """
    def test_asks(dsh_trial):
        pass


    def test_plain():
        pass
"""
#: Makes Python believe that the extra is not installed.
ABSENT = "import sys; sys.modules.update(pytest_trio=None, hypothesis=None)"


def run_pytest(folder: Path, tests: str, *arguments: str) -> str:
    (folder / "test_mine.py").write_text(textwrap.dedent(tests))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_project_gets_the_fixtures(tmp_path: Path) -> None:
    assert "1 passed" in run_pytest(tmp_path, WITH)


def test_without_the_extra_only_tests_that_need_it_fail_and_say_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(ABSENT)
    printed = run_pytest(tmp_path, WITHOUT, "-p", "no:trio", "-p", "no:hypothesispytest")
    assert "1 passed" in printed
    assert "1 error" in printed
    assert "needs pytest-trio; install dsh-runtime[testing]" in printed


def test_arguments_without_hypothesis_say_what_to_install() -> None:
    script = f"{ABSENT}; from dsh_runtime.testing import arguments_for; arguments_for({{}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "needs hypothesis; install dsh-runtime[testing]" in done.stderr


def test_pytest_starts_without_importing_the_host() -> None:
    script = """
import sys, dsh_runtime.pytest_plugin
sys.exit(sorted(name for name in sys.modules if name.startswith(("dsh_runtime.", "trio", "attr"))) !=
    ["dsh_runtime.pytest_plugin"])
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
