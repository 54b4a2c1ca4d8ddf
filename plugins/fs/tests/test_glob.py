"""Finding files by name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._glob import Glob
from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._roots import Roots
from dsh_plugin_fs._search import Searcher
from hypothesis import given
from hypothesis import strategies as st

FILES = ["a.py", "b.txt", ".env", "src/a.py", "src/deep/er/c.py", "src/.hidden/d.py", ".git/config", ".github/ci.yml"]


@pytest.fixture
def tree(root: Path) -> Path:
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text\n")
    return root


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "src/.hidden/d.py", "src/a.py", "src/deep/er/c.py"]),
        ("src/**", ["src/.hidden/d.py", "src/a.py", "src/deep/er/c.py"]),
        ("src/", ["src/.hidden/d.py", "src/a.py", "src/deep/er/c.py"]),
        ("**/er/*", ["src/deep/er/c.py"]),
        ("src/**/c.py", ["src/deep/er/c.py"]),
        ("**/deep/**/*.py", ["src/deep/er/c.py"]),
        ("*.{py,txt}", ["a.py", "b.txt"]),
        ("{src,.github}/*", [".github/ci.yml", "src/a.py"]),
        ("[ab].*", ["a.py", "b.txt"]),
        ("[!a].*", ["b.txt"]),
        ("?.py", ["a.py"]),
        (".*", [".env"]),
        ("A.PY", []),
        ("./a.py", ["a.py"]),
        ("src", []),
    ],
)
def test_patterns_find_files(tree: Path, searcher: Searcher, pattern: str, paths: list[str]) -> None:
    assert list(searcher.glob(pattern).paths) == paths


def test_hidden_files_count_and_git_is_left_out(tree: Path, searcher: Searcher) -> None:
    assert sorted(searcher.glob("**").paths) == sorted(set(FILES) - {".git/config"})
    assert searcher.glob("**", ".git").paths == (".git/config",)


def test_the_order_is_that_of_the_names(tree: Path, searcher: Searcher) -> None:
    paths = searcher.glob("**").paths
    assert list(paths) == sorted(paths, key=lambda path: path.split("/"))


def test_paths_start_at_the_root_wherever_the_search_starts(tree: Path, searcher: Searcher) -> None:
    assert searcher.glob("*.py", "src").paths == ("src/a.py",)
    assert searcher.glob("*.py", f"{tree}/src/").paths == ("src/a.py",)


def test_results_are_bounded_and_counted(tree: Path, roots: Roots) -> None:
    found = Searcher(roots, Limits(max_results=2)).glob("**/*.py")
    assert (found.paths, found.total, found.truncated) == (("a.py", "src/.hidden/d.py"), 4, True)


def test_links_are_neither_listed_nor_entered(tree: Path, outside: Path, searcher: Searcher) -> None:
    (tree / "out").symlink_to(outside)
    (tree / "out.py").symlink_to(outside / "secret.txt")
    (tree / "src" / "up").symlink_to("..")
    assert len(searcher.glob("**").paths) == len(FILES) - 1


def test_a_name_that_is_no_unicode_is_counted_as_skipped(root: Path, searcher: Searcher) -> None:
    os.close(os.open(os.fsencode(root) + b"/\xff", os.O_CREAT))
    assert searcher.glob("**").skipped == {"unnameable": 1}


def test_a_tree_that_is_too_deep_is_skipped_below(root: Path, searcher: Searcher) -> None:
    place = root
    for _ in range(120):
        place /= "d"
    place.mkdir(parents=True)
    (place / "f").write_text("")
    found = searcher.glob("**")
    assert (found.paths, found.skipped) == ((), {"too_deep": 1})


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../b", "a\\b", "x" * 1_001, "{a,b}" * 10, "."])
def test_patterns_that_cannot_be_meant_are_refused(searcher: Searcher, pattern: str) -> None:
    with pytest.raises(FsError) as caught:
        searcher.glob(pattern)
    assert caught.value.code == "FS_BAD_PATTERN"


def test_a_start_that_is_no_directory_is_refused(tree: Path, searcher: Searcher) -> None:
    for path, code in (("a.py", "FS_NOT_A_DIRECTORY"), ("missing", "FS_NOT_FOUND")):
        with pytest.raises(FsError) as caught:
            searcher.glob("*", path)
        assert caught.value.code == code


def test_a_hostile_pattern_takes_little_time() -> None:
    start = time.thread_time()
    assert not Glob("*a" * 400 + "b").matches(["a" * 255])
    assert not Glob("**/a/" * 199 + "b").matches(["a"] * 100)
    assert not Glob("**/" * 330 + "b").matches(["a"] * 100)
    assert time.thread_time() - start < 1.0


def test_a_search_ends_at_its_deadline(tree: Path, roots: Roots) -> None:
    ticks = iter(range(1_000))
    searcher = Searcher(roots, Limits(search_seconds=5), clock=lambda: float(next(ticks)))
    with pytest.raises(FsError) as caught:
        searcher.glob("**")
    assert caught.value.code == "FS_TIMEOUT"


NAMES = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
PARTS = st.one_of(st.just("**"), st.text("ab*?.", min_size=1, max_size=3)).filter(lambda part: part not in (".", ".."))


@given(names=st.lists(NAMES, min_size=1, max_size=4), parts=st.lists(PARTS, min_size=1, max_size=4))
def test_the_states_agree_with_a_plain_recursive_matcher(names: list[str], parts: list[str]) -> None:
    assert Glob("/".join(parts)).matches(names) == plainly(names, [*parts, "*"] if parts[-1] == "**" else parts)


def plainly(names: list[str], parts: list[str]) -> bool:
    if not parts:
        return not names
    if parts[0] == "**":
        return any(plainly(names[at:], parts[1:]) for at in range(len(names) + 1))
    return bool(names) and characters(names[0], parts[0]) and plainly(names[1:], parts[1:])


def characters(name: str, part: str) -> bool:
    if not part:
        return not name
    if part[0] == "*":
        return any(characters(name[at:], part[1:]) for at in range(len(name) + 1))
    return bool(name) and part[0] in ("?", name[0]) and characters(name[1:], part[1:])
