"""Unloading leaves nothing: what the plugin has registered, begun, opened, written and changed is gone with it."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any, Final

import trio
import trio.testing
from attrs import frozen

from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.kernel import Kernel
from dsh_runtime.core.ledger import Entry
from dsh_runtime.loader.leftovers import describe_task, describe_thread, outliving, tasks, threads
from dsh_runtime.testing.checks.process import ProcessState, process_state, temporary_files_in_a_folder
from dsh_runtime.testing.checks.subject import PATIENCE, Probe, Subject, made, mounted, within
from dsh_runtime.testing.trial import open_trial

_HOST_TASKS: Final = ("plugin ", "root plugin", "<TrioToken")


@frozen(eq=False)
class Before:
    """What there was before a plugin was loaded."""

    entries: frozenset[Entry]
    services: frozenset[str]
    events: frozenset[str]
    threads: set[threading.Thread]
    tasks: set[trio.lowlevel.Task]
    process: ProcessState


async def unloading_leaves_nothing(subject: Subject) -> None:
    """When the plugin is unloaded, everything it has registered, begun and changed is gone, and a second time, too."""
    named = [call.name for call in subject.calls]
    with temporary_files_in_a_folder() as folder:
        async with open_trial(*subject.companions) as trial:
            kernel: Kernel = trial.host.ctx.fiber.kernel
            before = _there_is(kernel, folder)
            for life in ("", "the second time, "):
                fiber = await mounted(trial, subject)
                probe = trial.host.ctx.plugin(Probe(named))
                await probe.wait()
                for call in subject.calls:
                    await made(trial, call)
                await probe.dispose()
                await _unloaded(fiber)
                _raise(await _left(kernel, before, folder), life)


def _there_is(kernel: Kernel, folder: str) -> Before:
    return Before(
        _registered(kernel),
        frozenset(kernel.service_names()),
        frozenset(kernel.events.names()),
        threads(),
        tasks(),
        process_state(folder),
    )


def _registered(kernel: Kernel) -> frozenset[Entry]:
    return frozenset(entry for fiber in (kernel.root, *kernel.fibers) for entry in fiber.entries)


async def _unloaded(fiber: Fiber) -> None:
    try:
        await within(_disposed(fiber), "unloading the plugin")
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"unloading the plugin failed: {error!r}") from error


async def _disposed(fiber: Fiber) -> None:
    await fiber.dispose()


async def _left(kernel: Kernel, before: Before, folder: str) -> list[str]:
    """What is left when it has had time to go."""
    found = [_registration(entry) for entry in _registered(kernel) - before.entries]
    found += [f"the service {name!r}" for name in set(kernel.service_names()) - before.services]
    found += [f"the event {name!r}" for name in set(kernel.events.names()) - before.events]
    found += [str(describe_thread(thread)) for thread in await outliving(before.threads)]
    end = time.monotonic() + PATIENCE.grace
    while (late := _running(before, folder)) and time.monotonic() < end:
        gc.collect()  # A file that nobody refers to is closed with its last reference, or by this.
        await trio.sleep(0.02)
    return found + late


def _registration(entry: Entry) -> str:
    owner = entry.fiber.id
    name: Any = getattr(entry.value, "where", None) or repr(entry.key)
    return f"{entry.table} {name}, registered for {owner!r}"


def _running(before: Before, folder: str) -> list[str]:
    strangers = [task for task in tasks() - before.tasks if not task.name.startswith(_HOST_TASKS)]
    return [str(describe_task(task)) for task in strangers] + before.process.left(process_state(folder))


def _raise(left: list[str], life: str) -> None:
    if left:
        raise AssertionError("\n  ".join([f"{life}unloading the plugin leaves something behind:", *sorted(left)]))
