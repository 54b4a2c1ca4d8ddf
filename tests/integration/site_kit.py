"""An environment on top of the one that the tests run in: what is installed there is gone with its folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path


class Site:
    """A folder that stands for an environment: what is installed there comes on top of what the tests have."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "site"
        hook = folder / "hook"
        hook.mkdir()
        # A folder on PYTHONPATH is not searched for .pth files, by which editable installs work; this one is.
        (hook / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(self.folder)!r})\n", "utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DSH_", "XDG_", "PYTEST"))}
        scripts = os.pathsep.join((sysconfig.get_path("scripts"), str(Path(sys.executable).parent), os.environ["PATH"]))
        self.environ = {**kept, "PYTHONPATH": str(hook), "PATH": scripts, "HOME": str(folder)}

    def run(self, *command: str | Path, cwd: Path, code: int = 0) -> str:
        """What a command prints; it has to end with ``code``."""
        done = subprocess.run(
            [str(part) for part in command], cwd=cwd, env=self.environ, text=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == code, f"{command}\n{done.stdout}"
        return done.stdout

    def pip(self, *arguments: str | Path, cwd: Path) -> None:
        """Run pip without asking any index."""
        head, *rest = arguments
        offline = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
        self.run(sys.executable, "-m", "pip", head, *offline, *rest, cwd=cwd)
