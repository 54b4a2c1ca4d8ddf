"""Log records on stderr."""

from __future__ import annotations

import logging

import pytest

from dsh_runtime.cli.logs import logging_to_stderr

log = logging.getLogger("dsh.test")


def fail() -> None:
    try:
        raise ValueError("no\nluck")
    except ValueError:
        log.exception("plugin %r failed", "x")


def test_records_are_one_line_each_without_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings and worse."""
    with logging_to_stderr(0) as handler:
        handler.tell_held()
        log.info("quiet")
        log.warning("careful\x1b[2J")
        fail()
    assert capsys.readouterr().err == "warning: careful\\x1b[2J\nerror: plugin 'x' failed (ValueError: no luck)\n"


def test_records_of_a_start_are_held_and_told_or_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    """A host that fails tells its problems itself."""
    with logging_to_stderr(0) as handler:
        log.warning("first")
        assert capsys.readouterr().err == ""
        handler.tell_held()
        assert capsys.readouterr().err == "warning: first\n"
    with logging_to_stderr(0) as handler:
        log.warning("first")
        handler.forget_held()
        log.warning("second")
    assert capsys.readouterr().err == "warning: second\n"


def test_verbose_tells_all_at_once_with_name_and_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is held."""
    with logging_to_stderr(1):
        log.info("told")
        log.debug("not told")
        fail()
    err = capsys.readouterr().err
    assert err.startswith("info: dsh.test: told\nerror: dsh.test: plugin 'x' failed\nTraceback")
    with logging_to_stderr(2):
        log.debug("told")
    assert capsys.readouterr().err == "debug: dsh.test: told\n"


def test_the_root_logger_is_as_it_was_afterwards() -> None:
    """Whoever embeds us keeps their own."""
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    with logging_to_stderr(2):
        pass
    assert (root.level, list(root.handlers)) == before
