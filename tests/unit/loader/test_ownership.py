"""Whose code a file is."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys

from dsh_runtime.loader.ownership import is_python


class Hook:
    '''Asks of each module whose it is, as the one that reloads plugins does.'''

    @staticmethod
    def find_spec(name, path=None, target=None):
        asked.append(name)
        assert is_python("<frozen os>")
        is_python(name)


asked = []
for name in [name for name in sys.modules if "sysconfig" in name]:
    del sys.modules[name]
sys.meta_path.insert(0, Hook)
import sysconfig

print(is_python(sysconfig.__file__), is_python(sysconfig.get_path("purelib") + "/a.py"), is_python("/home/me/a.py"))
print(any("_sysconfigdata" in name for name in asked))
"""


def test_an_import_hook_may_ask_whose_a_file_is() -> None:
    """The answer imports nothing: sysconfig, which would know it, is itself imported in the middle of its answers."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("True False False\nTrue\n", "")
