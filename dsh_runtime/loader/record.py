"""Whether a host keeps a record, and where: what ``[host.log]`` means."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import evolve

from .errors import ConfigProblem
from .model import HostConfig

RECORD: Final = "session-log"
_PATH: Final = ("host", "log", "path")


def keeps_record(config: HostConfig) -> bool:
    """Whether a host keeps the log: as its config says, else if it has a config file."""
    stated = any(path[:2] == ("host", "log") for path in config.trace.places)
    return config.host.log.enabled and (stated or bool(config.sources))


def without_record(config: HostConfig) -> HostConfig:
    """The same config for a host that makes no calls, and so keeps no log."""
    return evolve(config, host=evolve(config.host, log=evolve(config.host.log, enabled=False)))


def log_file(config: HostConfig) -> Path:
    """The file of the log; a relative path starts at the folder of the file that names it."""
    from dsh_runtime.services.sessions.files import log_path

    stated = config.host.log.path
    place = config.trace.exact(_PATH)
    if not stated:
        return log_path(None)
    folder = Path(place.file).parent if place is not None and place.file is not None else Path()
    return log_path(folder / Path(stated).expanduser())


def record_problem(config: HostConfig, error: BaseException) -> ConfigProblem:
    """What a host says that cannot open its log."""
    message = f"{error}; set 'path' in [host.log], or enabled = false to run without a record"
    return ConfigProblem(_PATH, message, config.where(_PATH))
