"""What is wrong with a new version, each problem with the author's own file and line."""

from __future__ import annotations

import traceback

import trio
from dsh_hookspecs import HarnessError

from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.staging import Stage
from dsh_runtime.loader.blame import place_of, summary_of
from dsh_runtime.loader.errors import ConfigProblem, LoaderError, Location, PluginLoadError
from dsh_runtime.loader.host import remedy_for, waiting_text
from dsh_runtime.loader.ownership import is_host, is_python

from .graph import is_installed


def problems_of_import(plugin: str, error: BaseException) -> list[ConfigProblem]:
    """Why a plugin could not be imported, or its config is refused."""
    raised: BaseException | None = error
    if isinstance(error, LoaderError):
        raised = error.__cause__ if isinstance(error, PluginLoadError) else None
        if raised is None or author_place(raised) is None:
            return list(error.problems)
    assert raised is not None
    if isinstance(raised, HarnessError):
        return [ConfigProblem((), str(raised), author_place(raised))]
    text = f"plugin {plugin!r} raised {summary_of(raised)} while it was imported{remedy_for(raised)}"
    return [ConfigProblem((), text, author_place(raised))]


def problems_of_fiber(fiber: Fiber, *, may_wait: bool) -> list[ConfigProblem]:
    """Why a fiber that has settled is not active."""
    error = fiber.error
    if fiber.state is State.FAILED and error is not None:
        if isinstance(error, LoaderError):
            return list(error.problems)
        text = f"plugin {fiber.id!r} failed: {summary_of(error)}{remedy_for(error)}"
        return [ConfigProblem((), text, author_place(error))]
    if fiber.state is State.PENDING and not may_wait:
        return [ConfigProblem((), waiting_text(fiber))]
    return []


def problem_of_late(fiber: Fiber, stage: Stage | None, limit: float | None) -> ConfigProblem:
    """That a fiber is not done with ``apply``, where it stands, and what to do."""
    text = (
        f"plugin {fiber.id!r} is still {fiber.state} after {limit:g} s (reload_timeout); let its apply() return and "
        "hand long work to ctx.start_soon"
    )
    task = stage.waiting_task_of(fiber) if stage is not None else None
    if task is not None:
        text += (
            f"; its task {task.label!r} begins only when the new version takes the old one's place: "
            "if apply() waits for it, set reload_policy = 'stop-first'"
        )
    return ConfigProblem((), text, _where(fiber.runner))


def author_place(error: BaseException) -> Location | None:
    """The innermost place in code that somebody works on, rather than in a library that it called."""
    frames = [] if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if not (is_host(frame.filename) or is_python(frame.filename) or is_installed(frame.filename)):
            return Location(frame.filename, frame.lineno or 1)
    return place_of(error)


def _where(task: trio.lowlevel.Task | None) -> Location | None:
    """The innermost place of a waiting task in somebody's own code."""
    found = None
    for frame, line in task.iter_await_frames() if task is not None else ():
        file = frame.f_code.co_filename
        if not is_host(file) and not is_python(file) and not is_installed(file):
            found = Location(file, line)
    return found
