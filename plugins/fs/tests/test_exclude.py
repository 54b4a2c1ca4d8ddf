"""What is excluded does not exist for any of the tools, whichever way a path leads there."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import dsh_plugin_fs
import pytest
from dsh_plugin_fs import Config
from dsh_plugin_fs._exclude import Exclude
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime import AbortController, ToolExecutionInput, open_host

SECRET = "TOKEN=s3cret\n"
EXCLUDE = ["**/.env", "**/.env.*", "keys/**", "private/", "*.pem"]
HIDDEN = [".env", "d/.env", "d/e/.env.local", "keys/a", "keys/d/b", "d/private/a", "d/x.pem", "D/.ENV"]
SEEN = ["d/env", "d/keys", "notes.txt", "x.pem.txt"]


@pytest.fixture
def tree(root: Path) -> Path:
    for name in (*HIDDEN, *SEEN):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(SECRET)
    (root / "to_file").symlink_to("d/.env")
    (root / "to_link").symlink_to("to_file")
    (root / "to_keys").symlink_to(root / "keys")
    (root / "d/.env.shown").symlink_to("../notes.txt")
    return root


@pytest.fixture
async def host(tree: Path) -> AsyncIterator[Any]:
    async with open_host() as host:
        await host.ctx.plugin(dsh_plugin_fs, Config(roots=[tree], exclude=EXCLUDE)).wait()
        yield host


async def call(host: Any, name: str, **arguments: Any) -> Any:
    return await host.ctx.tools.execute(ToolExecutionInput("c1", name, arguments, AbortController().signal))


WAYS = [
    *HIDDEN,
    "./d/../.env",
    "d/e/../.env",
    "to_file",
    "to_link",
    "to_keys/a",
    "to_keys/../keys/d/b",
    "d/.env.shown",
    "d/.env.new",
    "keys/new/file",
    ".Env",
    "\uff0eenv",
]


@pytest.mark.parametrize("path", WAYS)
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("fs_read", {}),
        ("fs_write", {"content": "mine"}),
        ("fs_edit", {"old_text": "s3cret", "new_text": "mine"}),
        ("fs_grep", {"pattern": "s3cret"}),
    ],
)
async def test_no_tool_opens_it(tree: Path, host: Any, name: str, more: dict[str, Any], path: str) -> None:
    before = sorted(os.walk(tree))
    result = await call(host, name, path=path, **more)
    assert result.error.info.code == "FS_EXCLUDED"
    assert "s3cret" not in str(result.content)
    assert sorted(os.walk(tree)) == before
    assert {(tree / hidden).read_text() for hidden in HIDDEN} == {SECRET}


@pytest.mark.parametrize("path", ["keys", "to_keys", "keys/d", "keys/none"])
async def test_no_search_begins_in_it(host: Any, path: str) -> None:
    for name in ("fs_glob", "fs_grep"):
        assert (await call(host, name, pattern="**", path=path)).error.info.code == "FS_EXCLUDED"


@pytest.mark.parametrize("start", [".", "d", "d/e"])
async def test_searches_leave_it_out_without_a_word(host: Any, start: str) -> None:
    seen = [path for path in sorted(SEEN) if start == "." or path.startswith(f"{start}/")]
    found = (await call(host, "fs_glob", pattern="**", path=start)).value
    assert found == {"paths": seen, "total": len(seen), "truncated": False, "skipped": {}}
    lines = (await call(host, "fs_grep", pattern="s3cret", path=start)).value
    assert ([file["path"] for file in lines["files"]], lines["total"], lines["skipped"]) == (seen, len(seen), {})


async def test_what_is_not_excluded_is_there(host: Any) -> None:
    for path in SEEN:
        assert (await call(host, "fs_read", path=path)).value["lines"][0]["text"] == SECRET.strip()


@given(st.lists(st.sampled_from(["a", "b", ".env", "keys"]), max_size=5))
def test_step_by_step_is_the_same_as_at_once(names: list[str]) -> None:
    excluded = Exclude(["**/.env", "a/keys", "b"]).walk(names) is None
    assert excluded == (".env" in names or "b" in names or names[:2] == ["a", "keys"])
