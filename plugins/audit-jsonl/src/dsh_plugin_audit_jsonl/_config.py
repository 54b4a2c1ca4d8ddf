"""The plugin's part of the config file."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen
from attrs.validators import ge


@frozen
class Config:
    """Where records go, what they hold, and how much of them is kept.

    A file that would grow beyond ``max_bytes`` is moved aside (``path.1`` is the latest); ``keep`` such files stay.
    ``capacity`` is how many calls may wait for their records to be written. With ``fsync`` a record counts as written
    once it is on the disk. ``arguments`` longer than ``max_argument_bytes`` are cut.
    """

    path: Path
    arguments: bool = False
    max_argument_bytes: int = field(default=4096, validator=ge(0))
    max_bytes: int = field(default=10_000_000, validator=ge(1))
    keep: int = field(default=5, validator=ge(1))
    capacity: int = field(default=1000, validator=ge(1))
    fsync: bool = False
