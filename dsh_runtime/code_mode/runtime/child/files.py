"""Removes what a program may have left in its working directory, whatever that is."""

from __future__ import annotations

import contextlib
import os
import stat

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(folder: str) -> bool:
    """Remove a directory and all that is in it, however deep; whether it is gone. Nobody may be at work in it any more.

    No link is followed. Directories are moved up to the top before they are emptied, so that depth costs neither
    recursion nor descriptors nor long paths.
    """
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        return True
    with contextlib.suppress(OSError):
        top = os.open(folder, _FOLDER)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)
    return not os.path.lexists(folder)


def _empty(top: int) -> None:
    waiting, prefix, count = ["."], os.urandom(8).hex(), 0
    while waiting:
        name = waiting.pop()
        for entry, is_folder in _entries(top, name):
            inner = entry if name == "." else f"{name}/{entry}"
            if not is_folder:
                os.unlink(inner, dir_fd=top)
                continue
            count += 1
            moved = f"{prefix}.{count}"
            with contextlib.suppress(OSError):
                os.chmod(inner, 0o700, dir_fd=top)
                os.rename(inner, moved, src_dir_fd=top, dst_dir_fd=top)
                waiting.append(moved)
        if name != ".":
            os.rmdir(name, dir_fd=top)


def _entries(top: int, name: str) -> list[tuple[str, bool]]:
    descriptor = os.open(name, _FOLDER, dir_fd=top)
    try:
        return [(entry, _is_folder(entry, descriptor)) for entry in os.listdir(descriptor)]
    finally:
        os.close(descriptor)


def _is_folder(name: str, within: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)
