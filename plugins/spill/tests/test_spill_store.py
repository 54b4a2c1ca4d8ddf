"""The folder: bounded, private, whole files, and no way out of it."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest
from dsh_plugin_spill import SpillError, Store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def file_of(folder: Path, locator: str) -> Path:
    return folder / (locator.removeprefix("spill:") + ".txt")


def test_a_text_comes_back_as_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path, 1000)
    assert store.read(store.put("ä text", "c1"), 0, 100).text == "ä text"


def test_a_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(tmp_path / "new", 1000)
        locator = store.put("x", "c1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file_of(tmp_path / "new", locator).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_the_same_text_of_the_same_call_is_one_file_and_of_another_call_another(tmp_path: Path) -> None:
    store = Store(tmp_path, 1000)
    assert store.put("x", "c1") == store.put("x", "c1")
    assert store.put("x", "c2") != store.put("x", "c1")
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize("call_id", ["../../etc/passwd", "/", "a\0b", "x" * 10_000, ""])
def test_no_call_id_leads_outside_the_folder(tmp_path: Path, call_id: str) -> None:
    store = Store(tmp_path / "store", 1000)
    locator = store.put("x", call_id)
    assert names(tmp_path) == ["store"]
    assert store.read(locator, 0, 100).text == "x"


def test_the_oldest_texts_go_when_the_folder_is_full(tmp_path: Path) -> None:
    store = Store(tmp_path, 100)
    locators = [store.put(mark * 40, "c1") for mark in "ab"]
    for age, locator in zip((30, 20), locators, strict=True):
        os.utime(file_of(tmp_path, locator), (time.time() - age,) * 2)
    third = store.put("c" * 40, "c1")
    assert names(tmp_path) == sorted(file_of(tmp_path, locator).name for locator in (locators[1], third))


def test_a_text_larger_than_the_folder_may_be_is_refused_and_deletes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, 100)
    kept = store.put("a", "c1")
    with pytest.raises(SpillError, match="more than the 100"):
        store.put("b" * 101, "c1")
    assert store.read(kept, 0, 10).text == "a"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(st.lists(st.integers(0, 60), max_size=12))
def test_the_folder_is_never_larger_than_its_limit(tmp_path: Path, sizes: list[int]) -> None:
    store = Store(tmp_path, 100)
    for number, size in enumerate(sizes):
        store.put("x" * size, str(number))
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 100
    store.close()


def test_files_of_others_are_neither_counted_nor_deleted(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x" * 500)
    store = Store(tmp_path, 100)
    store.put("a" * 90, "c1")
    store.put("b" * 90, "c1")
    assert (tmp_path / "notes.txt").exists()
    assert len(names(tmp_path)) == 2


def test_a_file_that_was_never_finished_goes_in_time(tmp_path: Path) -> None:
    old, new = tmp_path / ".a.part", tmp_path / ".b.part"
    for path, age in ((old, 3600), (new, 1)):
        path.write_text("x")
        os.utime(path, (time.time() - age,) * 2)
    Store(tmp_path, 100).put("a", "c1")
    assert not old.exists()
    assert new.exists()


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 100)

    def fail(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        store.put("a", "c1")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "locator",
    [
        "", "spill:", "x", "spill:../../../etc/passwd", "spill:" + "0" * 40 + "-" + "0" * 12,
        "spill:" + "0" * 40 + "-" + "0" * 12 + "\n", "spill:" + "0" * 40 + "-" + "0" * 12 + "/../x",
    ],
)  # fmt: skip
def test_a_locator_under_which_nothing_is_stored_is_an_error(tmp_path: Path, locator: str) -> None:
    with pytest.raises(SpillError, match="no text is stored") as raised:
        Store(tmp_path, 100).read(locator, 0, 10)
    assert raised.value.code == "UNKNOWN_LOCATOR"


def test_a_link_in_place_of_a_text_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("not yours")
    store = Store(tmp_path / "store", 100)
    locator = store.put("a", "c1")
    file_of(tmp_path / "store", locator).unlink()
    file_of(tmp_path / "store", locator).symlink_to(outside)
    with pytest.raises(OSError):
        store.read(locator, 0, 10)


def test_a_folder_that_is_swapped_for_a_link_gets_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", 100)
    (tmp_path / "store").rename(tmp_path / "moved")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store").symlink_to(tmp_path / "elsewhere")
    store.put("a", "c1")
    assert names(tmp_path / "elsewhere") == []
    assert len(names(tmp_path / "moved")) == 1


def test_a_pipe_in_place_of_a_text_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    store = Store(tmp_path, 100)
    locator = store.put("a", "c1")
    file_of(tmp_path, locator).unlink()
    os.mkfifo(file_of(tmp_path, locator))
    with pytest.raises(SpillError, match="no file of its own"):
        store.read(locator, 0, 10)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.integers(4, 40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_windows_that_follow_one_another_are_the_text(tmp_path: Path, text: str, limit: int) -> None:
    store = Store(tmp_path, 10_000)
    locator = store.put(text, "c1")
    parts, offset = [], 0
    while offset < len(text.encode()):
        window = store.read(locator, offset, limit)
        assert window.end > offset
        parts.append(window.text)
        offset = window.end
    assert "".join(parts) == text
    store.close()


@given(st.integers(0, 30), st.integers(4, 10))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_window_from_anywhere_has_whole_characters_and_no_more_than_asked_for(
    tmp_path: Path, offset: int, limit: int
) -> None:
    text = "aé€😀" * 2
    store = Store(tmp_path, 10_000)
    window = store.read(store.put(text, "c1"), offset, limit)
    assert len(window.text.encode()) <= limit
    assert text.encode()[window.offset : window.end].decode() == window.text
    store.close()


def test_a_closed_store_takes_nothing_and_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path, 100)
    store.close()
    store.close()
    with pytest.raises(SpillError, match="closed"):
        store.put("a", "c1")


def test_threads_that_store_at_once_lose_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, 100_000)
    threads = [threading.Thread(target=store.put, args=(f"text {number}", "c1")) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names(tmp_path)) == 8


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SpillError, match="cannot be used"):
        Store(tmp_path / "file" / "store", 100)
