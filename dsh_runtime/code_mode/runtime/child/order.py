"""What a program is confined to: the host's order, as the template, the warden and the program read it."""

from __future__ import annotations

from typing import TypedDict


class Order(TypedDict):
    """One place for one program. ``user`` is the user and group to become, if the host is root."""

    folder: str
    user: int | None
    memory: int
    cpu_time: int
    processes: int
    threads: int
    file_bytes: int
    open_files: int
    max_frame: int
    sub_calls: int
    bwrap: str | None
