"""Write what the plugins of a config are now into its table of pins."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dsh_runtime.cli.errors import SUCCESS, CliError, note
from dsh_runtime.cli.plugins.pin_text import CannotEditError, edit_pins
from dsh_runtime.cli.session import read_config
from dsh_runtime.loader.content import Content, UnpinnableError, content_of
from dsh_runtime.loader.discover import AmbiguousNameError
from dsh_runtime.loader.errors import did_you_mean, quoted
from dsh_runtime.loader.model import HostConfig, PluginRow
from dsh_runtime.loader.pin import Pin
from dsh_runtime.loader.resolve import PluginNotFoundError

if TYPE_CHECKING:
    from dsh_runtime.cli.options import Options
    from dsh_runtime.cli.output import Output

_BOM: Final = "\ufeff"


def pin_plugins(options: Options, ids: Sequence[str], output: Output) -> int:
    """Pin the enabled plugins, or some of them; everything is looked at before anything is written."""
    config = read_config(options)
    old = dict(config.pins or {})
    pins = _pins(config, ids, old)
    file = Path(config.sources[-1])
    _check_layers(config, file, old, pins)
    if pins != old or config.pins is None:
        _write(file, pins)
    _tell(output, file, old, pins)
    return SUCCESS


def _pins(config: HostConfig, ids: Sequence[str], old: Mapping[str, Pin]) -> dict[str, Pin]:
    """The new pins, in the order of the config. Those of plugins that are switched off stay as they are."""
    rows = {row.id: row for row in config.rows}
    for name in ids:
        if name not in rows:
            raise CliError(f"the config has no plugin {quoted(name)}; {did_you_mean(name, rows)}")
        if not rows[name].enabled:
            raise CliError(f"plugin '{name}' is switched off (enabled = false); switch it on to pin it")
    chosen = [row for row in config.rows if row.enabled and (not ids or row.id in ids)]
    fresh = dict(_look_at(chosen))
    return {row_id: fresh.get(row_id) or old[row_id] for row_id in rows if row_id in fresh or row_id in old}


def _look_at(rows: Sequence[PluginRow]) -> Iterator[tuple[str, Pin]]:
    problems: list[str] = []
    for row in rows:
        try:
            yield row.id, _pin(row)
        except (PluginNotFoundError, AmbiguousNameError, UnpinnableError) as error:
            problem = f"plugin '{row.id}' (use = '{row.use}') cannot be pinned: {error}"
            note(problem) if row.optional else problems.append(problem)
    if problems:
        raise CliError(*problems)


def _pin(row: PluginRow) -> Pin:
    found: Content = content_of(row)
    if found.faults:
        wheel, files = f"{found.wheel} {found.version}", ", ".join(found.faults[:3])
        raise UnpinnableError(f"{files} of {wheel} was changed where it is installed; install the wheel again")
    return Pin(wheel=found.wheel, version=found.version, digest=found.digest)


def _check_layers(config: HostConfig, file: Path, old: Mapping[str, Pin], pins: Mapping[str, Pin]) -> None:
    """A pin that another file has can be replaced from here, but not removed."""
    for row_id in old:
        place = config.where(("pins", row_id))
        if row_id not in pins and place is not None and place.file != str(file):
            raise CliError(f"{place}: plugin '{row_id}' is pinned there, and the config has none; remove that pin")


def _write(file: Path, pins: Mapping[str, Pin]) -> None:
    try:
        text = file.read_bytes().decode("utf-8")
        bom = _BOM if text.startswith(_BOM) else ""
        edited = bom + edit_pins(text.removeprefix(_BOM), pins)
        _replace(file.resolve(), text, edited)
    except CannotEditError as error:
        raise CliError(f"'{file}' is left as it is: {error}") from error
    except OSError as error:
        raise CliError(f"'{file}' cannot be written: {error.strerror or error}; make it writable") from error


def _replace(file: Path, text: str, edited: str) -> None:
    """Put the new text in the place of the old in one step, unless somebody else has been there."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(edited.encode("utf-8"))
        os.chmod(name, file.stat().st_mode)
        if file.read_bytes() != text.encode("utf-8"):
            raise CliError(f"'{file.name}' was changed meanwhile, and is left as it is; run this again")
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _tell(output: Output, file: Path, old: Mapping[str, Pin], pins: Mapping[str, Pin]) -> None:
    changes = {row_id: _change(old.get(row_id), pins.get(row_id)) for row_id in {**pins, **old}}
    if output.is_json:
        documents = [_document(row_id, pins, change) for row_id, change in changes.items()]
        output.document({"file": str(file), "pins": documents})
        return
    width = max(map(len, changes), default=0)
    for row_id, change in changes.items():
        pin = pins.get(row_id) or old[row_id]
        words = [pin.wheel or "", pin.version or "", f"{pin.digest[:23]}…"]
        style = "dim" if change == "as before" else "bold"
        output.line((row_id.ljust(width), "cyan"), "  ", (change.ljust(9), style), "  ", " ".join(filter(None, words)))
    count = len(pins)
    output.line(("pinned", "bold green"), f": {file}: {count} plugin{'' if count == 1 else 's'}")


def _change(old: Pin | None, new: Pin | None) -> str:
    if new is None:
        return "removed"
    if old is None:
        return "new"
    return "as before" if old == new else "changed"


def _document(row_id: str, pins: Mapping[str, Pin], change: str) -> dict[str, Any]:
    pin = pins.get(row_id)
    known = {"wheel": pin.wheel, "version": pin.version, "digest": pin.digest} if pin is not None else {}
    return {"id": row_id, "change": change, **known}
