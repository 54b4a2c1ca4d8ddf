"""An environment on top of the one that the tests run in: what is installed there is gone with its folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

#: pip, as a reader has it who is offline and has what is needed already: it asks no index and changes only the site.
_PIP = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this one upside down
    "PIP_NO_DEPS": "1",
    "PIP_NO_INDEX": "1",
    "PIP_QUIET": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}


def site_environ(folder: Path) -> dict[str, str]:
    """The environment of a process for which ``folder / "site"`` is a folder of installed packages, ``folder`` home."""
    site, hook = folder / "site", folder / "hook"
    hook.mkdir()
    # A folder on PYTHONPATH is not searched for .pth files, by which editable installs work; this one is.
    (hook / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(site)!r})\n", "utf-8")
    path = os.pathsep.join((sysconfig.get_path("scripts"), str(Path(sys.executable).parent), os.environ["PATH"]))
    dropped = ("DSH_", "PIP_", "PYTEST", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    own = {"HOME": str(folder), "PATH": path, "PIP_TARGET": str(site), "PYTHONPATH": str(hook), "PYTHONUTF8": "1"}
    return {**kept, **own, **_PIP}


class Site:
    """Runs commands in such an environment."""

    def __init__(self, folder: Path) -> None:
        self.environ = site_environ(folder)

    def run(self, *command: str | Path, cwd: Path, code: int = 0) -> str:
        """What a command prints; it has to end with ``code``."""
        done = subprocess.run(
            [str(part) for part in command], cwd=cwd, env=self.environ, text=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == code, f"{command}\n{done.stdout}"
        return done.stdout
