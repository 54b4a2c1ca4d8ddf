"""Nothing outside the root is read or written, whatever is swapped for whatever else while a call runs.

One test swaps between the system calls of a call: which call, which swap and before which system calls comes from a
seed, so every try can be repeated. Another lets a thread swap as fast as it can.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._match import literal_matcher
from dsh_plugin_fs._read import read_window
from dsh_plugin_fs._roots import Roots, opened
from dsh_plugin_fs._search import Searcher
from dsh_plugin_fs._write import Writer, is_temporary

TRIES = 10_000
SYSTEM_CALLS = ("open", "stat", "fstat", "readlink", "mkdir", "scandir", "pread", "write", "replace", "unlink")

Call: TypeAlias = Callable[[Roots], object]


def read(path: str) -> Call:
    return lambda roots: read_window(roots, path, 1, 100, Limits())


def write(path: str) -> Call:
    return lambda roots: Writer(roots, Limits()).write(path, "written\n")


def edit(path: str) -> Call:
    return lambda roots: Writer(roots, Limits()).edit(path, "text", "edited")


def glob(pattern: str, path: str) -> Call:
    return lambda roots: Searcher(roots, Limits()).glob(pattern, path)


def grep(path: str) -> Call:
    return lambda roots: Searcher(roots, Limits()).grep(literal_matcher("text", ignore_case=False), path)


CALLS: list[Call] = [
    *(read(path) for path in ("d/f", "d/sub/g", "link/f", "d/sub/../f", "d/inner")),
    *(write(path) for path in ("d/f", "d/sub/g", "link/f", "d/new", "d/made/x/new", "d/sub/../f", "d/inner")),
    *(edit(path) for path in ("d/f", "d/sub/g", "link/f")),
    *(glob("**", path) for path in (".", "d", "link")),
    *(grep(path) for path in (".", "d", "link", "d/f")),
]

#: Name in the root and what takes its place: the text of a link, or ``None`` for a pipe.
SWAPS: list[tuple[str, str | None]] = [
    ("d", "../outside"),
    ("d", "{outside}"),
    ("d", ".."),
    ("d", "aside/sub"),
    ("d/f", "../../outside/f"),
    ("d/f", "{outside}/f"),
    ("d/f", None),
    ("d/sub", "../../outside/sub"),
    ("d/sub", "{outside}/sub"),
    ("d/sub/g", "{outside}/sub/g"),
    ("d/made", "{outside}"),
    ("d/new", "{outside}/f"),
    ("d/inner", "../../outside/f"),
    ("link", "../outside"),
    ("link", "{outside}"),
]


class Arena:
    """A root and what lies outside; the same before every try."""

    def __init__(self, top: Path) -> None:
        self.root, self.outside = top / "root", top / "outside"
        (self.outside / "sub").mkdir(parents=True)
        (self.outside / "f").write_text("SECRET text\n")
        (self.outside / "sub" / "g").write_text("SECRET text\n")
        (self.outside / "SECRET-name").write_text("text\n")
        self._untouched = self._state_outside()
        self.root.mkdir()
        self.build()

    def build(self) -> None:
        for entry in self.root.iterdir():
            remove(entry)
        (self.root / "d" / "sub").mkdir(parents=True)
        (self.root / "d" / "f").write_text("text\n")
        (self.root / "d" / "sub" / "g").write_text("text\n")
        (self.root / "d" / "inner").symlink_to("sub/g")
        (self.root / "link").symlink_to("d")

    def swap(self, name: str, text: str | None) -> None:
        """Put a link or a pipe in the place of ``name``; if it is there already, put back what was there."""
        place, aside = self.root / name, self.root / "aside"
        if place.parent.is_symlink():
            return  # what is swapped has to lie inside
        try:
            if os.path.lexists(aside):
                remove(self.root / "gone")
                os.rename(place, self.root / "gone")
                os.rename(aside, place)
                return
            if os.path.lexists(place):
                os.rename(place, aside)
            if text is None:
                os.mkfifo(place)
            else:
                os.symlink(text.format(outside=self.outside), place)
        except OSError:
            pass  # the call that is disturbed has moved something too

    def check(self, answer: object) -> None:
        """The promise: nothing from outside came in, nothing went out, nothing unfinished stayed."""
        assert "SECRET" not in repr(answer)
        assert self._state_outside() == self._untouched
        left = [name for _, _, names in os.walk(self.root) for name in names if is_temporary(name)]
        assert left == []

    def _state_outside(self) -> list[tuple[str, int, bytes]]:
        places = sorted(self.outside.rglob("*"))
        return [(str(at), at.stat().st_ino, at.read_bytes() if at.is_file() else b"") for at in places]


def remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


@pytest.fixture
def arena(monkeypatch: pytest.MonkeyPatch) -> Iterator[Arena]:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    memory = "/dev/shm"  # where there is one, ten thousand trees cost no disk
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as top:
        yield Arena(Path(os.path.realpath(top)))


@contextmanager
def before_system_calls(action: Callable[[int], None]) -> Iterator[None]:
    """Run ``action`` before every system call that the block makes, with the number of the call."""
    real = {name: getattr(os, name) for name in SYSTEM_CALLS}
    number, inside = 0, False

    def watched(name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal number, inside
            if not inside:
                inside = True
                try:
                    action(number)
                finally:
                    number, inside = number + 1, False
            return real[name](*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in SYSTEM_CALLS:
            patch.setattr(os, name, watched(name))
        yield


def run(call: Call, roots: Roots) -> object:
    try:
        return call(roots)
    except FsError as error:
        return error.code


def test_no_swap_between_two_system_calls_leads_outside(arena: Arena) -> None:
    answers: set[str] = set()
    with opened([arena.root]) as roots:
        descriptors = len(os.listdir("/proc/self/fd"))
        for seed in range(TRIES):
            chance = random.Random(seed)
            call, swap = chance.choice(CALLS), chance.choice(SWAPS)
            moments = {chance.randrange(25) for _ in range(chance.randint(1, 4))}

            def disturb(number: int, swap: tuple[str, str | None] = swap, moments: set[int] = moments) -> None:
                if number in moments:
                    arena.swap(*swap)

            with before_system_calls(disturb):
                answer = run(call, roots)
            arena.check(answer)
            answers.add(answer if isinstance(answer, str) else type(answer).__name__)
            arena.build()
        assert len(os.listdir("/proc/self/fd")) == descriptors
    assert answers >= {"Window", "Written", "PathsFound", "LinesFound", "FS_OUTSIDE_ROOT", "FS_CHANGED", "FS_NOT_FOUND"}


def test_every_call_survives_every_single_swap_at_every_moment(arena: Arena) -> None:
    with opened([arena.root]) as roots:
        for call in CALLS:
            for swap in SWAPS:
                moment, reached = 0, True
                while reached:
                    reached = False

                    def disturb(number: int, swap: tuple[str, str | None] = swap, moment: int = moment) -> None:
                        nonlocal reached
                        if number == moment:
                            reached = True
                            arena.swap(*swap)

                    with before_system_calls(disturb):
                        answer = run(call, roots)
                    arena.check(answer)
                    arena.build()
                    moment += 1


def test_no_swap_by_a_thread_leads_outside(arena: Arena) -> None:
    done = threading.Event()
    chance = random.Random(0)
    swaps = [swap for swap in SWAPS if swap[0] in ("d", "link", "d/sub")]

    def attack() -> None:
        mine = random.Random(1)
        while not done.is_set():
            swap = mine.choice(swaps)
            arena.swap(*swap)
            arena.swap(*swap)
            if mine.random() < 0.02:
                with suppress(OSError):  # the calls have moved something meanwhile
                    arena.build()

    attacker = threading.Thread(target=attack)
    attacker.start()
    answers: set[str] = set()
    try:
        with opened([arena.root]) as roots:
            for _ in range(TRIES):
                answer = run(chance.choice(CALLS), roots)
                assert "SECRET" not in repr(answer)
                answers.add(answer if isinstance(answer, str) else type(answer).__name__)
    finally:
        done.set()
        attacker.join()
    arena.check(None)
    assert answers >= {"Window", "Written", "LinesFound", "FS_OUTSIDE_ROOT"}
