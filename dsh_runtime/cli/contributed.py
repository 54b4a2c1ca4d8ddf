"""Commands that installed wheels bring: entry points of the group ``dsh.commands``, each a click command."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final

import click

from dsh_runtime.cli.errors import CliError

GROUP: Final = "dsh.commands"


def contributed_names() -> list[str]:
    """The names of the commands that wheels bring, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def contributed_command(name: str) -> click.Command | None:
    """The command of a wheel, imported; ``None`` if no wheel brings one of this name."""
    points = sorted(entry_points(group=GROUP, name=name), key=_distribution)
    if not points:
        return None
    if len({(_distribution(point), point.value) for point in points}) > 1:
        owners = " and ".join(repr(_distribution(point)) for point in points)
        raise CliError(f"the command {name!r} is brought by {owners}; uninstall one of them")
    (point, *_) = points
    try:
        command = point.load()
    except Exception as error:
        subject = f"the command {name!r} of {_distribution(point)!r}"
        raise CliError(f"{subject} cannot be imported: {type(error).__name__}: {error}; mend that wheel") from error
    if not isinstance(command, click.Command):
        raise CliError(f"the command {name!r} of {_distribution(point)!r} is no click command; mend that wheel")
    return command


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "?"
