"""Finding lines by content."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._match import Matcher, literal_matcher, regex_matcher
from dsh_plugin_fs._roots import Roots
from dsh_plugin_fs._search import LinesFound, Searcher


def literal(text: str) -> Matcher:
    return literal_matcher(text, ignore_case=False)


def expression(text: str) -> Matcher:
    return regex_matcher(text, ignore_case=False)


def flat(found: LinesFound) -> list[tuple[str, int, str]]:
    return [(file.path, match.line_number, match.line) for file in found.files for match in file.matches]


@pytest.fixture
def tree(root: Path) -> Path:
    (root / "src").mkdir()
    (root / ".git").mkdir()
    (root / "a.txt").write_bytes(b"one (1)\r\ntwo\r\nOne\r\n")
    (root / "src" / "b.py").write_text("one = 1\n")
    (root / ".git" / "c").write_text("one\n")
    return root


def test_a_literal_is_searched_as_it_stands(tree: Path, searcher: Searcher) -> None:
    assert flat(searcher.grep(literal("one"))) == [("a.txt", 1, "one (1)"), ("src/b.py", 1, "one = 1")]
    assert flat(searcher.grep(literal("(1)"))) == [("a.txt", 1, "one (1)")]


def test_case_can_be_ignored(tree: Path, searcher: Searcher) -> None:
    assert searcher.grep(literal_matcher("ONE (", ignore_case=True)).total == 1
    assert searcher.grep(regex_matcher("^one$", ignore_case=True)).total == 1


def test_an_expression_sees_one_line_at_a_time(tree: Path, searcher: Searcher) -> None:
    assert flat(searcher.grep(expression(r"^\w+$"))) == [("a.txt", 2, "two"), ("a.txt", 3, "One")]


def test_the_files_can_be_narrowed_by_glob(tree: Path, searcher: Searcher) -> None:
    assert [path for path, _, _ in flat(searcher.grep(literal("one"), files="*.py"))] == ["src/b.py"]
    assert [path for path, _, _ in flat(searcher.grep(literal("one"), files="src/*"))] == ["src/b.py"]


def test_one_file_can_be_searched(tree: Path, searcher: Searcher) -> None:
    assert flat(searcher.grep(literal("one"), "src/b.py")) == [("src/b.py", 1, "one = 1")]
    assert flat(searcher.grep(literal("one"), "src")) == [("src/b.py", 1, "one = 1")]


def test_results_are_bounded_and_counted(root: Path, roots: Roots) -> None:
    for name in "abc":
        (root / name).write_text("x\n" * 3)
    found = Searcher(roots, Limits(max_results=4)).grep(literal("x"))
    assert [(path, number) for path, number, _ in flat(found)] == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    assert (found.total, found.truncated) == (9, True)


def test_files_that_cannot_be_searched_are_counted(root: Path, roots: Roots) -> None:
    (root / "binary").write_bytes(b"x\0")
    (root / "latin").write_bytes(b"x\xe9")
    (root / "large").write_text("x" * 200)
    (root / "text").write_text("x")
    found = Searcher(roots, Limits(max_file_bytes=100)).grep(literal("x"))
    assert [path for path, _, _ in flat(found)] == ["text"]
    assert found.skipped == {"binary": 2, "too_large": 1}


@pytest.mark.parametrize(
    ("name", "code"), [("binary", "FS_IS_BINARY"), ("large", "FS_TOO_LARGE"), ("no", "FS_NOT_FOUND")]
)
def test_a_file_that_was_asked_for_by_name_and_cannot_be_searched_is_an_error(
    root: Path, roots: Roots, name: str, code: str
) -> None:
    (root / "binary").write_bytes(b"x\0")
    (root / "large").write_text("x" * 200)
    with pytest.raises(FsError) as caught:
        Searcher(roots, Limits(max_file_bytes=100)).grep(literal("x"), name)
    assert caught.value.code == code


def test_a_long_line_is_cut_around_the_match(root: Path, roots: Roots) -> None:
    (root / "f").write_text("-" * 5_000 + "HERE" + "-" * 5_000)
    (line,) = [line for _, _, line in flat(Searcher(roots, Limits(max_match_chars=200)).grep(literal("HERE")))]
    assert "HERE" in line
    assert len(line) == 202


def test_an_expression_sees_the_head_of_an_endless_line_and_says_so(root: Path, searcher: Searcher) -> None:
    (root / "f").write_text("-" * 100_000 + "HERE")
    found = searcher.grep(expression("HERE$"))
    assert (found.total, found.skipped) == (0, {"long_lines": 1})
    assert searcher.grep(literal_matcher("here", ignore_case=True)).total == 1


@pytest.mark.parametrize(
    "pattern",
    ["", "x" * 1_001, "a\nb", "(", "(?:(?:a{1000}){1000}){1000}", "(?R)", "(?1)(a)", "(?x) a", "(" * 500 + ")" * 500],
)
def test_an_expression_that_is_none_or_grows_without_bound_is_refused(pattern: str) -> None:
    with pytest.raises(FsError) as caught:
        expression(pattern)
    assert caught.value.code == "FS_BAD_PATTERN"


@pytest.mark.parametrize(
    "pattern", [r"\d{4}-\d{2}-\d{2}", r"(?i)todo|fixme", r"(?<!\w)x(?=\()", r"(?P<max>\w+)\s+(?P=max)"]
)
def test_ordinary_expressions_are_allowed(pattern: str) -> None:
    expression(pattern)


def test_catastrophic_backtracking_ends_and_lets_the_host_go_on(root: Path, searcher: Searcher) -> None:
    (root / "f").write_text("a" * 5_000 + "b\n")
    caught: list[FsError] = []

    def search() -> None:
        try:
            searcher.grep(expression("(a+)+$"))
        except FsError as error:
            caught.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    longest, last = 0.0, time.perf_counter()
    while thread.is_alive():
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    assert caught[0].code == "FS_TIMEOUT"
    assert longest < 0.8


def test_a_search_stops_between_files(root: Path, searcher: Searcher) -> None:
    for number in range(10):
        (root / f"f{number}").write_text("x")
    seen = 0

    def matches(line: str) -> int:
        nonlocal seen
        seen += 1
        return 0

    def stop() -> None:
        if seen == 3:
            raise KeyError("stopped")

    with pytest.raises(KeyError):
        searcher.grep(Matcher(matches), poll=stop)
    assert seen == 3


def test_links_are_not_searched(tree: Path, outside: Path, searcher: Searcher) -> None:
    (tree / "out").symlink_to(outside)
    (tree / "secret").symlink_to(outside / "secret.txt")
    assert searcher.grep(literal("SECRET")).total == 0
