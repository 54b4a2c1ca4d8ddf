"""Whether plugins are what a config has pinned. Nothing is imported for it, and it is asked before anything is.

What is not pinned on a host with pins is refused like what has changed: pins that could be got round by adding a row
would pin nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .content import Content, UnpinnableError, content_of
from .discover import AmbiguousNameError
from .errors import ConfigProblem
from .model import HostConfig, PluginRow
from .pin import Pin, PinMismatchError
from .resolve import PluginNotFoundError

_SHOWN: Final = 16
_MAX_NAMED: Final = 3
PIN_COMMAND: Final = "dsh-run plugins pin"


def check_row(config: HostConfig, row: PluginRow) -> None:
    """Raise :class:`PinMismatchError` unless the code that a row uses is what is pinned for it."""
    if config.pins is None:
        return
    problem = _problem(config, row, config.pins.get(row.id))
    if problem is not None:
        raise PinMismatchError([problem])


def refusals(config: HostConfig) -> dict[str, PinMismatchError]:
    """The enabled rows that may not be loaded, each with why, in their order."""
    found: dict[str, PinMismatchError] = {}
    for row in config.rows:
        try:
            if row.enabled:
                check_row(config, row)
        except PinMismatchError as error:
            found[row.id] = error
    return found


def stray_pins(config: HostConfig) -> list[ConfigProblem]:
    """Pins of plugins that the config does not have: whoever pinned them wanted them there."""
    known = {row.id for row in config.rows}
    return [_stray(config, row_id) for row_id in config.pins or () if row_id not in known]


def _stray(config: HostConfig, row_id: str) -> ConfigProblem:
    path = ("pins", row_id)
    message = f"plugin '{row_id}' is pinned, and the config has none; put it back, or run '{PIN_COMMAND}'"
    return ConfigProblem(path, message, config.where(path))


def _problem(config: HostConfig, row: PluginRow, pin: Pin | None) -> ConfigProblem | None:
    if pin is None:
        message = f"plugin '{row.id}' has no pin, and this config has [pins]; look at it and run '{PIN_COMMAND}'"
        return ConfigProblem(row.trace.root, message, row.origin)
    path = ("pins", row.id)
    try:
        content = content_of(row)
    except (PluginNotFoundError, AmbiguousNameError, UnpinnableError) as error:
        return ConfigProblem(path, f"plugin '{row.id}' (use = '{row.use}') is pinned: {error}", config.where(path))
    if content.digest == pin.digest and not content.faults:
        return None
    message = (
        f"plugin '{row.id}' is not what was pinned: expected {_described(pin)}, found {_described(content)}"
        f"{_named(content.faults)}; {_remedy(content)}"
    )
    return ConfigProblem(path, message, config.where(path))


def _described(code: Pin | Content) -> str:
    words = [code.wheel, code.version, f"{code.digest[: len('sha256:') + _SHOWN]}…"]
    return " ".join(word for word in words if word)


def _remedy(content: Content) -> str:
    """What to do; a wheel that was changed where it is installed is not one that can be pinned."""
    if content.faults:
        return "install the wheel again that was pinned"
    return f"install what was pinned, or look at the change and run '{PIN_COMMAND}'"


def _named(faults: Sequence[str]) -> str:
    """The files of a wheel that were changed where they are installed."""
    if not faults:
        return ""
    more = f" and {len(faults) - _MAX_NAMED} more" if len(faults) > _MAX_NAMED else ""
    return f", changed where it is installed: {', '.join(faults[:_MAX_NAMED])}{more}"
