"""The unanswered requests of a client."""

from __future__ import annotations

import trio
import trio.testing
from dsh_plugin_mcp_server._backlog import Backlog


def test_an_id_is_used_once_at_a_time() -> None:
    """As text or as a number."""
    backlog = Backlog(10, 1000)
    assert backlog.add(7, 1)
    assert not backlog.add("7", 1)
    backlog.settle("7")
    assert backlog.add("7", 1)


def test_it_is_full_by_number_or_by_size() -> None:
    """Many short ones or a few long ones."""
    backlog = Backlog(2, 1000)
    backlog.add(1, 10)
    assert not backlog.full
    backlog.add(2, 10)
    assert backlog.full
    backlog.settle(1)
    backlog.add(3, 990)
    assert backlog.full
    backlog.settle(3)
    assert not backlog.full
    backlog.settle(2)
    assert backlog.empty


def test_a_cancellation_is_remembered_until_the_request_is_settled() -> None:
    """A later request of the same id is another one, and one that is not there cannot be cancelled."""
    backlog = Backlog(10, 1000)
    backlog.cancel(1)
    backlog.add(1, 1)
    assert not backlog.is_cancelled(1)
    backlog.cancel("1")
    assert backlog.is_cancelled(1)
    backlog.settle(1)
    backlog.add(1, 1)
    assert not backlog.is_cancelled(1)


async def test_whoever_waits_for_room_is_woken_by_an_answer() -> None:
    """And by nothing else."""
    backlog, woken = Backlog(1, 1000), trio.Event()
    backlog.add(1, 1)

    async def wait() -> None:
        await backlog.settled()
        woken.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert not woken.is_set()
        backlog.settle(1)


def test_refusals_count_as_well() -> None:
    """They belong to no request, and there may be many."""
    backlog = Backlog(2, 1000)
    backlog.add(1, 10)
    backlog.add_refusal()
    assert backlog.full
    backlog.settle(1)
    assert not backlog.full
    assert not backlog.empty
    backlog.settle_refusal()
    assert backlog.empty
