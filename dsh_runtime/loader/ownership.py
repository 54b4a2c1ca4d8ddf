"""Whose code a file is: a plugin's, the host's, Python's, or somebody else's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from .errors import Location

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber

_HOST: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep
# Not from sysconfig, which imports modules to answer: an import hook that asks what is being imported would hang there.
_LIBRARY: Final = os.path.join(os.path.dirname(os.__file__), "")
MAX_FRAMES: Final = 200


@frozen
class Spot:
    """A place that a stack is at: in which file, line and function, and whose plugin's, where that is known."""

    place: Location
    function: str
    plugin: str | None = None


def is_host(filename: str) -> bool:
    """Whether a file is the host's own."""
    return filename.startswith(_HOST)


def is_python(filename: str) -> bool:
    """Whether a file is the standard library's, or no file at all."""
    return filename.startswith("<") or (filename.startswith(_LIBRARY) and "site-packages" not in filename)


def roots_of(source: Any) -> tuple[str, ...]:
    """The files and folders (these with a closing separator) that a plugin's code stands in; the host's has none."""
    module = module_of(source)
    if module is None:
        return ()
    package = _package_of(module.__name__)
    if package is not None:
        roots = [os.path.join(os.path.abspath(folder), "") for folder in package.__path__]
    else:
        file = getattr(module, "__file__", None)
        roots = [os.path.abspath(file)] if file else []
    return tuple(root for root in roots if not is_host(root))


def is_within(filename: str, roots: Iterable[str]) -> bool:
    """Whether a file is one of the roots, or stands below one."""
    return any(filename == root or (root.endswith(os.sep) and filename.startswith(root)) for root in roots)


def owner_of(filename: str, fibers: Iterable[Fiber]) -> Fiber | None:
    """The plugin that a file belongs to: of several, the one with the closest root, then the first in order."""
    best, found = 0, None
    for fiber in sorted(fibers, key=lambda fiber: fiber.path):
        for root in roots_of(fiber.spec.source):
            if len(root) > best and is_within(filename, (root,)):
                best, found = len(root), fiber
    return found


def frames_of(frame: FrameType | None) -> list[FrameType]:
    """The frames of a stack, the innermost first; of a very deep one, the innermost."""
    frames: list[FrameType] = []
    while frame is not None and len(frames) < MAX_FRAMES:
        frames.append(frame)
        frame = frame.f_back
    return frames


def blame_stack(stack: Sequence[Spot], fibers: Iterable[Fiber]) -> Spot | None:
    """Of a stack, the innermost first: what stands in a plugin's code, else the innermost that is not Python's own."""
    others = [spot for spot in stack if not is_python(spot.place.file)]
    known = list(fibers)
    for spot in others:
        fiber = owner_of(spot.place.file, known) if not is_host(spot.place.file) else None
        if fiber is not None:
            return evolve(spot, plugin=fiber.id)
    return next(iter(others), None)


def spots_of(frame: FrameType | None) -> list[Spot]:
    """A stack as values, the innermost first."""
    return [Spot(place_of_frame(one), one.f_code.co_qualname) for one in frames_of(frame)]


def place_of_frame(frame: FrameType) -> Location:
    """Where a frame stands."""
    return Location(frame.f_code.co_filename, frame.f_lineno or frame.f_code.co_firstlineno)


def module_of(source: Any) -> ModuleType | None:
    """The module that a plugin object comes from."""
    if isinstance(source, ModuleType):
        return source
    name = getattr(source, "__module__", None) or type(source).__module__
    return sys.modules.get(name) if isinstance(name, str) else None


def _package_of(name: str) -> ModuleType | None:
    """The outermost package of a module that is no mere namespace."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        package = sys.modules.get(".".join(parts[:end]))
        if getattr(package, "__file__", None) and hasattr(package, "__path__"):
            return package
    return None
