"""One config file is read whole, or refused with file, line and column."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from dsh_runtime.loader.document import MAX_FILE_BYTES, parse_document, read_document
from dsh_runtime.loader.errors import ConfigError, Location
from dsh_runtime.loader.nodes import to_plain


def refusal(file: Path) -> tuple[str, Location | None]:
    with pytest.raises(ConfigError) as caught:
        read_document(file)
    (problem,) = caught.value.problems
    return problem.message, problem.location


def test_malformed_toml_is_refused_with_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "dsh.toml"
    file.write_text("a = 1\nb = = 2\n")
    message, location = refusal(file)
    assert message.startswith("malformed TOML: ")
    assert str(location) == f"{file}:2:5"


def test_an_unfinished_file_is_refused_at_its_last_line(tmp_path: Path) -> None:
    file = tmp_path / "dsh.toml"
    file.write_text('a = 1\nb = [1,\n"""')
    assert refusal(file)[1] == Location(str(file), 3)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "dsh.toml"
    file.write_text("[host]\nthreads = 1\nthreads = 2\n")
    message, location = refusal(file)
    assert "overwrite" in message
    assert location is not None
    assert location.line == 3


def test_an_integer_too_long_to_convert_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "dsh.toml"
    file.write_text("a = " + "9" * 5000)
    assert "malformed TOML" in refusal(file)[0]


def test_a_utf8_bom_is_no_obstacle(tmp_path: Path) -> None:
    file = tmp_path / "dsh.toml"
    file.write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert to_plain(read_document(file)) == {"a": 1}


def test_utf16_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "dsh.toml"
    file.write_text("a = 1", encoding="utf-16")
    assert "UTF-16" in refusal(file)[0]


def test_bytes_that_are_not_utf8_are_refused_with_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "dsh.toml"
    file.write_bytes("a = 1\né = '".encode() + b"\xff'")
    message, location = refusal(file)
    assert "0xff is not UTF-8" in message
    assert location == Location(str(file), 2, 6)


def test_a_file_beyond_the_size_limit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "dsh.toml"
    file.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    assert "larger than 1024 KiB" in refusal(file)[0]


def test_a_file_that_nests_too_deep_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "dsh.toml"
    file.write_text("a = 1\nb = " + "[" * 5_000 + "]" * 5_000)
    message, location = refusal(file)
    assert "nests deeper than 64 levels" in message
    assert location == Location(str(file), 2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "dsh.toml"
    os.mkfifo(pipe)
    seen: list[str] = []
    reader = threading.Thread(target=lambda: seen.append(refusal(pipe)[0]), daemon=True)
    reader.start()
    reader.join(5)
    assert seen == [f"the config file '{pipe}' is no regular file"]


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    assert "is no regular file" in refusal(tmp_path)[0]
    assert "does not exist" in refusal(tmp_path / "nothing.toml")[0]


def test_every_value_knows_its_line() -> None:
    tree = parse_document("[host]\nthreads = 1\n", "x.toml")
    host = tree.entries["host"]
    assert host.where == Location("x.toml", 1)
