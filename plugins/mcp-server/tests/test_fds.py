"""Taking over stdin and stdout."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from dsh_hookspecs import HarnessError
from dsh_plugin_mcp_server._fds import claimed_stdio

SHARED = """
import os, subprocess, sys
from dsh_plugin_mcp_server._fds import claimed_stdio
print("before", flush=True)
with claimed_stdio() as (stdin, stdout):
    print("stray")
    subprocess.run(["echo", "child"])
    os.write(stdout, b"wire " + os.read(stdin, 100))
print("after " + sys.stdin.read())
"""


def test_the_wire_is_private_and_the_standard_descriptors_come_back() -> None:
    """What is buffered at the end goes to stderr and not to the client."""
    done = subprocess.run([sys.executable, "-c", SHARED], input="hello", capture_output=True, text=True, check=True)
    assert done.stdout == "before\nwire helloafter \n"
    assert sorted(done.stderr.split()) == ["child", "stray"]


def test_they_are_taken_once_at_a_time() -> None:
    """A second client would find neither of them."""
    with claimed_stdio(), pytest.raises(HarnessError, match="serve an MCP client already"), claimed_stdio():
        pass
    with claimed_stdio():
        pass


def test_they_come_back_after_an_error() -> None:
    """And no descriptor is left open."""
    before = _open_descriptors()
    with pytest.raises(ValueError, match="broken"), claimed_stdio():
        raise ValueError("broken")
    assert _open_descriptors() == before


@pytest.mark.parametrize(("redirection", "name"), [("<&-", "stdin"), (">&-", "stdout")])
def test_a_process_without_them_says_so(redirection: str, name: str) -> None:
    """Another file may have got the descriptor's number by then."""
    script = "from dsh_plugin_mcp_server._fds import claimed_stdio\nclaimed_stdio().__enter__()"
    command = ["sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, script]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert f"began without {name}" in done.stderr


def _open_descriptors() -> list[tuple[int, int]]:
    found = []
    for fd in range(64):
        try:
            found.append((fd, os.fstat(fd).st_ino))
        except OSError:
            continue
    return found
