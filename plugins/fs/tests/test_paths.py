"""Where a path may lead."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._match import literal_matcher
from dsh_plugin_fs._read import Window, read_window
from dsh_plugin_fs._roots import Roots, open_roots, opened
from dsh_plugin_fs._search import Searcher
from dsh_plugin_fs._write import Writer
from hypothesis import given, settings
from hypothesis import strategies as st


def read(roots: Roots, path: str) -> Window:
    return read_window(roots, path, 1, 100, Limits())


def text_of(roots: Roots, path: str) -> list[str]:
    return [line.text for line in read(roots, path).lines]


def code_of(call: Callable[[], object]) -> str | None:
    with pytest.raises(FsError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "FS_BAD_PATH"),
        ("a\0b", "FS_BAD_PATH"),
        ("~/x", "FS_BAD_PATH"),
        ("~", "FS_BAD_PATH"),
        ("dir\\file", "FS_BAD_PATH"),
        ("\ud800", "FS_BAD_PATH"),
        ("x" * 300, "FS_BAD_PATH"),
        ("x/" * 3_000, "FS_BAD_PATH"),
        ("d/" * 150 + "x", "FS_BAD_PATH"),
        ("..", "FS_NOT_A_FILE"),
        ("../outside/secret.txt", "FS_OUTSIDE_ROOT"),
        ("dir/../../outside/secret.txt", "FS_OUTSIDE_ROOT"),
        ("/etc/passwd", "FS_OUTSIDE_ROOT"),
        ("//etc/passwd", "FS_OUTSIDE_ROOT"),
        (".", "FS_NOT_A_FILE"),
        ("dir", "FS_NOT_A_FILE"),
        ("dir/", "FS_NOT_A_FILE"),
        ("file/", "FS_NOT_A_FILE"),
        ("file/x", "FS_NOT_A_DIRECTORY"),
        ("missing", "FS_NOT_FOUND"),
        ("missing/x", "FS_NOT_FOUND"),
    ],
)
def test_a_path_that_leads_to_no_file_inside_has_a_code(
    root: Path, outside: Path, roots: Roots, path: str, code: str
) -> None:
    (root / "dir").mkdir()
    (root / "file").write_text("x")
    assert code_of(lambda: read(roots, path)) == code


def test_write_and_search_refuse_what_read_refuses(
    root: Path, outside: Path, writer: Writer, searcher: Searcher
) -> None:
    path = "../outside/secret.txt"
    assert code_of(lambda: writer.write(path, "x")) == "FS_OUTSIDE_ROOT"
    assert code_of(lambda: writer.edit(path, "SECRET", "x")) == "FS_OUTSIDE_ROOT"
    assert code_of(lambda: searcher.glob("*", "../outside")) == "FS_OUTSIDE_ROOT"
    assert code_of(lambda: searcher.grep(literal_matcher("S", ignore_case=False), path)) == "FS_OUTSIDE_ROOT"
    assert (outside / "secret.txt").read_text() == "SECRET\n"


def test_dots_inside_the_root_are_walked(root: Path, roots: Roots) -> None:
    (root / "a").mkdir()
    (root / "b").write_text("b")
    assert read(roots, "./a/.././b").path == "b"


def test_an_absolute_path_inside_the_root_is_shown_relative(root: Path, roots: Roots) -> None:
    (root / "b").write_text("b")
    assert read(roots, f"{root}/b").path == "b"
    assert code_of(lambda: read(roots, f"{root}/../outside/secret.txt")) == "FS_OUTSIDE_ROOT"
    assert code_of(lambda: read(roots, f"{root}x/b")) == "FS_OUTSIDE_ROOT"


def test_a_path_below_a_second_root_is_shown_as_it_can_be_asked_for(tmp_path: Path, root: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "f").write_text("two")
    with opened([root, second]) as roots:
        shown = read(roots, f"{second}/f").path
        assert shown == f"{second}/f"
        assert text_of(roots, shown) == ["two"]
        assert code_of(lambda: read(roots, "../second/f")) == "FS_OUTSIDE_ROOT"


def test_the_innermost_of_nested_roots_is_used(root: Path, outside: Path) -> None:
    (root / "in").mkdir()
    (root / "in" / "f").write_text("x")
    (root / "in" / "up").symlink_to("../g")
    (root / "g").write_text("g")
    with opened([root, root / "in"]) as roots:
        assert code_of(lambda: read(roots, f"{root}/in/up")) == "FS_OUTSIDE_ROOT"
        assert text_of(roots, "in/up") == ["g"]


def test_links_that_stay_inside_are_followed(root: Path, roots: Roots) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "f").write_text("here")
    (root / "link").symlink_to("a/b")
    (root / "absolute").symlink_to(root / "a")
    (root / "a" / "back").symlink_to("../link/f")
    assert text_of(roots, "link/f") == ["here"]
    assert text_of(roots, "absolute/b/f") == ["here"]
    assert text_of(roots, "a/back") == ["here"]
    assert read(roots, "a/back").path == "a/b/f"


@pytest.mark.parametrize("link", ["../outside", "{outside}", "dir/../../outside", "/proc/self/root{outside}"])
def test_links_that_lead_outside_are_refused(root: Path, outside: Path, roots: Roots, link: str) -> None:
    (root / "dir").mkdir()
    (root / "link").symlink_to(link.format(outside=outside))
    assert code_of(lambda: read(roots, "link/secret.txt")) == "FS_OUTSIDE_ROOT"
    (root / "file").symlink_to(link.format(outside=outside) + "/secret.txt")
    assert code_of(lambda: read(roots, "file")) == "FS_OUTSIDE_ROOT"
    assert code_of(lambda: Writer(roots, Limits()).write("file", "x")) == "FS_OUTSIDE_ROOT"
    assert code_of(lambda: Writer(roots, Limits()).write("link/new", "x")) == "FS_OUTSIDE_ROOT"
    assert os.listdir(outside) == ["secret.txt"]


def test_a_circle_of_links_ends(root: Path, roots: Roots) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "deep").symlink_to("deep/deep")
    assert code_of(lambda: read(roots, "a")) == "FS_LINK_LOOP"
    assert code_of(lambda: read(roots, "deep")) == "FS_LINK_LOOP"


def test_a_link_to_a_name_that_is_no_text_is_refused(root: Path, roots: Roots) -> None:
    os.symlink(b"\xff", os.fsencode(root) + b"/link")
    assert code_of(lambda: read(roots, "link")) == "FS_BAD_PATH"


def test_a_root_that_is_a_link_is_resolved_once(tmp_path: Path, root: Path, outside: Path) -> None:
    (root / "f").write_text("first")
    name = tmp_path / "name"
    name.symlink_to(root)
    with opened([name]) as roots:
        name.unlink()
        name.symlink_to(outside)
        assert text_of(roots, f"{name}/f") == ["first"]
        assert text_of(roots, f"{root}/f") == ["first"]
        assert code_of(lambda: read(roots, "secret.txt")) == "FS_NOT_FOUND"


def test_a_root_that_is_no_directory_is_refused_by_name(root: Path) -> None:
    (root / "f").write_text("")
    for wrong in (root / "f", root / "missing"):
        with pytest.raises(FsError, match="correct 'roots'") as caught:
            open_roots([root, wrong])
        assert str(wrong) in caught.value.message


def test_a_closed_root_is_refused_and_its_descriptor_not_used_again(root: Path) -> None:
    roots = open_roots([root])
    roots.close()
    roots.close()
    assert code_of(lambda: read(roots, "f")) == "FS_CLOSED"


def test_pipes_sockets_and_devices_are_refused_without_waiting(tmp_path: Path, root: Path, roots: Roots) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(root)
        server.bind("socket")
        os.chdir(here)
    for name in ("pipe", "socket"):
        assert code_of(lambda name=name: read(roots, name)) == "FS_NOT_A_FILE"  # type: ignore[misc]
        assert code_of(lambda name=name: Writer(roots, Limits()).write(name, "x")) == "FS_NOT_A_FILE"  # type: ignore[misc]
    with opened(["/dev"]) as devices:
        assert code_of(lambda: read(devices, "null")) == "FS_NOT_A_FILE"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_file_is_denied(root: Path, roots: Roots) -> None:
    (root / "f").write_text("x")
    (root / "f").chmod(0)
    assert code_of(lambda: read(roots, "f")) == "FS_DENIED"


def test_no_call_leaves_a_descriptor_open(root: Path, outside: Path, roots: Roots, searcher: Searcher) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "f").write_text("x")
    (root / "a" / "out").symlink_to(outside)
    before = os.listdir("/proc/self/fd")
    for path in ("a/b/f", "a/b", "a/out/x", "a/b/f/x", "a/missing", "a/../../x"):
        for call in (read, lambda roots, path: Writer(roots, Limits()).write(path, "x")):
            with suppress(FsError):
                call(roots, path)
    searcher.glob("**")
    assert os.listdir("/proc/self/fd") == before


NAMES = st.sampled_from(["a", "b", "c", "..", ".", "secret.txt", "outside", ""])
PATHS = st.lists(NAMES, min_size=1, max_size=6).map("/".join)


@st.composite
def links(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Names in the tree and the text of the link that stands there."""
    text = st.one_of(PATHS, PATHS.map("{root}/".__add__), st.just("{root}/../outside"), st.just("../outside"))
    name = st.sampled_from(["a", "b", "c", "a/a", "a/b", "b/c"])
    return draw(st.lists(st.tuples(name, text), max_size=6))


@settings(max_examples=400, deadline=None)
@given(links=links(), paths=st.lists(PATHS, min_size=1, max_size=8))
def test_no_tree_of_links_leads_outside(links: list[tuple[str, str]], paths: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(os.path.realpath(name))
        root, outside = top / "root", top / "outside"
        root.mkdir()
        outside.mkdir()
        (outside / "secret.txt").write_text("SECRET")
        for at, text in links:
            place = root / at
            if os.path.realpath(place.parent).startswith(str(root)) and place.parent.is_dir() and text:
                if not os.path.lexists(place):
                    place.symlink_to(text.format(root=root))
            elif not os.path.lexists(place.parent):
                place.parent.mkdir()
        with opened([root]) as roots:
            for path in paths:
                _touch(roots, path)
        assert os.listdir(outside) == ["secret.txt"]
        assert (outside / "secret.txt").read_text() == "SECRET"
        assert sorted(os.listdir(top)) == ["outside", "root"]


def _touch(roots: Roots, path: str) -> None:
    """Do everything with ``path`` that there is to do, and look for the secret in the answers."""
    calls: list[Callable[[], object]] = [
        lambda: text_of(roots, path),
        lambda: Searcher(roots, Limits()).grep(literal_matcher("SECRET", ignore_case=False), path).files,
        lambda: Searcher(roots, Limits()).glob("**", path).paths,
        lambda: Writer(roots, Limits()).edit(path, "SECRET", "changed"),
        lambda: Writer(roots, Limits()).write(path, "written"),
    ]
    for call in calls:
        with suppress(FsError):
            assert "SECRET" not in repr(call())
