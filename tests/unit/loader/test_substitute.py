"""References to the environment and to files are filled in, once, and never evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.loader import substitute
from dsh_runtime.loader.document import parse_document
from dsh_runtime.loader.nodes import Leaf, to_plain, walk
from dsh_runtime.loader.substitute import Substitution

ENVIRON = {"TOKEN": "s3cret", "EMPTY": "", "NESTED": "${env:TOKEN}"}


def fill(text: str, directory: Path = Path()) -> object:
    """What the value ``text`` becomes."""
    result = Substitution(ENVIRON, directory).apply(Leaf(text))
    return to_plain(result)


def problem_with(text: str, directory: Path = Path()) -> str:
    substitution = Substitution(ENVIRON, directory)
    substitution.apply(Leaf(text))
    (problem,) = substitution.problems
    return problem.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${env:TOKEN}", "s3cret"),
        ("Bearer ${env:TOKEN}!", "Bearer s3cret!"),
        ("${env:TOKEN}${env:TOKEN}", "s3crets3cret"),
        ("${env:EMPTY}", ""),
        ("$${env:TOKEN}", "${env:TOKEN}"),
        ("$${", "${"),
        ("$$${env:TOKEN}", "$${env:TOKEN}"),
        ("$TOKEN $ {x} $$", "$TOKEN $ {x} $$"),
    ],
)
def test_variables_and_escapes(text: str, expected: str) -> None:
    assert fill(text) == expected


def test_what_was_filled_in_is_not_looked_at_again() -> None:
    assert fill("${env:NESTED}") == "${env:TOKEN}"


def test_a_file_is_read_relative_to_the_config_and_loses_its_last_line_end(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"one\ntwo\r\n")
    assert fill("<${file:token}>", tmp_path) == "<one\ntwo>"
    assert fill(f"${{file:{tmp_path / 'token'}}}") == "one\ntwo"


def test_a_variable_that_is_not_set_is_named() -> None:
    assert "environment variable 'MISSING' is not set" in problem_with("${env:MISSING}")


@pytest.mark.parametrize("text", ["${TOKEN}", "${}", "${envTOKEN}", "${python:1+1}", "${ENV:TOKEN}", "${env}"])
def test_an_unknown_scheme_is_refused_with_the_known_ones(text: str) -> None:
    message = problem_with(text)
    assert repr(text) in message
    assert "${env:NAME} and ${file:PATH}" in message


def test_a_reference_that_is_not_closed_is_refused() -> None:
    assert "not closed" in problem_with("a ${env:TOKEN")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (substitute.MAX_VALUE_FILE_BYTES + 1))
    (tmp_path / "binary").write_bytes(b"\xff")
    assert "does not exist" in problem_with("${file:nothing}", tmp_path)
    assert "larger than 64 KiB" in problem_with("${file:large}", tmp_path)
    assert "not UTF-8" in problem_with("${file:binary}", tmp_path)
    assert "no regular file" in problem_with("${file:.}", tmp_path)
    assert "no regular file" in problem_with("${file:/dev/zero}", tmp_path)
    assert "cannot be read" in problem_with("${file:a\0b}", tmp_path)


def test_keys_are_left_alone() -> None:
    tree = Substitution(ENVIRON, Path()).apply(parse_document('"${env:TOKEN}" = "${env:TOKEN}"', "x.toml"))
    assert to_plain(tree) == {"${env:TOKEN}": "s3cret"}


def test_only_values_with_a_substitution_are_secret() -> None:
    text = 'a = "${env:TOKEN}"\nb = ["plain", "x${env:TOKEN}"]\nc = "$${env:TOKEN}"\nd = 1'
    tree = Substitution(ENVIRON, Path()).apply(parse_document(text, "x.toml"))
    assert [path for path, node in walk(tree) if isinstance(node, Leaf) and node.secret] == [("a",), ("b", 1)]


def test_every_missing_value_is_reported_with_its_path_and_line() -> None:
    substitution = Substitution({}, Path())
    substitution.apply(parse_document('a = "${env:A}"\nb = [\n"${env:B}"]', "x.toml"))
    assert [(p.path, str(p.location)) for p in substitution.problems] == [(("a",), "x.toml:1"), (("b", 0), "x.toml:3")]


def test_the_number_of_substitutions_is_bounded() -> None:
    assert "more than 1000" in problem_with("${env:TOKEN}" * (substitute.MAX_SUBSTITUTIONS + 1))


@given(st.text())
def test_a_variable_arrives_unchanged_whatever_it_holds(value: str) -> None:
    assert to_plain(Substitution({"X": value}, Path()).apply(Leaf("<${env:X}>"))) == f"<{value}>"


@given(st.text("a$\\{}:env"))
def test_a_text_without_references_arrives_unchanged(text: str) -> None:
    if "${" not in text:
        assert fill(text) == text
