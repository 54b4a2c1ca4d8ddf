"""Python log records are masked while the plugin is loaded, and no longer."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import dsh_plugin_redact
import pytest

from dsh_runtime import open_host

LOG = logging.getLogger("test.redact")
SECRET = "password=" + "hunter2"
MASKED = "password=[redacted: secret]"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


@pytest.mark.trio
async def test_messages_and_their_arguments_are_masked(written: io.StringIO) -> None:
    async with open_host(plugins=[dsh_plugin_redact]):
        LOG.warning("logging in with %s", SECRET)
    assert written.getvalue() == f"logging in with {MASKED}\n"


@pytest.mark.trio
async def test_the_text_of_an_exception_is_masked_in_the_traceback_and_in_itself(
    written: io.StringIO, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_host(plugins=[dsh_plugin_redact]):
        try:
            raise KeyError(SECRET)
        except KeyError:
            LOG.exception("it failed")
    assert "hunter2" not in written.getvalue()
    assert MASKED in written.getvalue()
    assert "Traceback" in written.getvalue() and "in test_the_text_of_an_exception" in written.getvalue()
    [record] = caplog.records
    assert record.exc_info is not None
    kind, error, _ = record.exc_info
    assert kind is not None
    assert kind.__name__ == "KeyError"
    assert "hunter2" not in str(error)


@pytest.mark.trio
async def test_an_exception_without_a_secret_stays_the_very_same(
    written: io.StringIO, caplog: pytest.LogCaptureFixture
) -> None:
    error = KeyError("plain")
    async with open_host(plugins=[dsh_plugin_redact]):
        LOG.error("it failed", exc_info=error)
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[1] is error


@pytest.mark.trio
async def test_extra_fields_and_stacks_are_masked(caplog: pytest.LogCaptureFixture) -> None:
    async with open_host(plugins=[dsh_plugin_redact]):
        LOG.warning("x", extra={"api_key": "hunter2", "detail": {"note": SECRET}, "job": object()}, stack_info=True)
    [record] = caplog.records
    assert record.__dict__["api_key"] == "[redacted: secret]"
    assert record.__dict__["detail"] == {"note": MASKED}


@pytest.mark.trio
async def test_arguments_that_do_not_fit_are_told_masked(written: io.StringIO) -> None:
    async with open_host(plugins=[dsh_plugin_redact]):
        LOG.warning("%d items", SECRET)
    assert "hunter2" not in written.getvalue()
    assert "%d items" in written.getvalue()


@pytest.mark.trio
async def test_a_record_that_cannot_be_masked_says_nothing(written: io.StringIO) -> None:
    class HostileError(Exception):
        def __str__(self) -> str:
            raise SystemError("no text")

    class Rude:
        def __str__(self) -> str:
            raise SystemError(SECRET)

        __repr__ = __str__

    async with open_host(plugins=[dsh_plugin_redact]):
        LOG.warning("%s", Rude())
        LOG.warning("fine", exc_info=HostileError())
    assert "hunter2" not in written.getvalue()


@pytest.mark.trio
async def test_the_handlers_of_any_logger_mask(written: io.StringIO) -> None:
    """Also of one that tells no other."""
    apart = logging.getLogger("test.redact.apart")
    apart.propagate = False
    stream = io.StringIO()
    apart.addHandler(handler := logging.StreamHandler(stream))
    try:
        async with open_host(plugins=[dsh_plugin_redact]):
            apart.warning(SECRET)
    finally:
        apart.removeHandler(handler)
    assert stream.getvalue() == f"{MASKED}\n"


@pytest.mark.trio
async def test_where_a_program_has_set_up_no_handler_stderr_is_masked_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    async with open_host(plugins=[dsh_plugin_redact]):
        LOG.warning(SECRET)
    assert capsys.readouterr().err == f"{MASKED}\n"
    assert logging.lastResort is not None and not logging.lastResort.filters


@pytest.mark.trio
async def test_unloading_leaves_no_filter_behind(written: io.StringIO) -> None:
    async with open_host(plugins=[dsh_plugin_redact]):
        pass
    LOG.warning(SECRET)
    assert written.getvalue() == f"{SECRET}\n"
    assert not any(handler.filters for handler in logging.getLogger().handlers)


@pytest.mark.trio
async def test_logs_can_be_left_alone(written: io.StringIO) -> None:
    row = {"id": "redact", "use": "redact", "config": {"logs": False}}
    async with open_host({"plugin": [row]}):
        LOG.warning(SECRET)
    assert written.getvalue() == f"{SECRET}\n"
