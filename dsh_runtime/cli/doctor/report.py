"""What the doctor has found, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from attrs import Factory, define

from dsh_runtime.cli.errors import FAILED, SUCCESS
from dsh_runtime.cli.output import Output
from dsh_runtime.cli.survey import PluginNode, survey_installed, survey_plugins
from dsh_runtime.cli.text import Part, counted
from dsh_runtime.loader.doctor.diagnosis import diagnose
from dsh_runtime.loader.doctor.finding import Finding, Kind, Severity, finding
from dsh_runtime.loader.doctor.unloading import Unloading
from dsh_runtime.loader.errors import LoaderError, Location, format_path
from dsh_runtime.loader.host import Host
from dsh_runtime.loader.model import HostConfig

_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


@define(eq=False)
class Report:
    """What there is to say of one config."""

    config: HostConfig
    output: Output
    nodes: list[PluginNode] = Factory(list)
    findings: list[Finding] = Factory(list)
    unloads: dict[str, bool] = Factory(dict)

    def look_at(self, host: Host) -> None:
        """Take in what is wrong with a host that has been started as far as it goes."""
        self.nodes = survey_plugins(host)
        wheels = [(node.id, node.wheel) for node in self.nodes if node.wheel is not None and node.state != "disabled"]
        self.findings += diagnose(host, survey_installed(host), wheels)

    def start_failed(self, error: LoaderError) -> None:
        """Take in that the host could not be started as far as it goes."""
        for problem in error.problems:
            self.findings.append(
                finding(Kind.LATE, Severity.ERROR, problem.message, config=problem.location, path=problem.path)
            )

    def add(self, unloading: Unloading) -> None:
        """Take in how the plugins unload."""
        self.findings += unloading.findings
        self.unloads |= unloading.clean

    def stuck(self, going_on: list[str]) -> None:
        """Take in that the host does not close, and the tasks that keep it."""
        text = f"the host does not close: {', '.join(going_on) or 'something'} goes on although it is cancelled"
        remedy = "let it end when it is cancelled: a handler of BaseException has to raise again"
        self.findings.append(finding(Kind.UNLOAD, Severity.ERROR, text, remedy=remedy))

    @property
    def may_start_again(self) -> bool:
        """Whether a second host would not hang where the first one did."""
        return bool(self.nodes) and all(found.kind is not Kind.LATE for found in self.findings)

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        return FAILED if any(found.severity is not Severity.NOTE for found in self.findings) else SUCCESS

    def show(self) -> None:
        """Write it all."""
        output = self.output
        if output.is_json:
            output.document(self.document())
            return
        for found in self.findings:
            for line in _lines(found):
                output.line(*line)
        output.line(*self._summary())

    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "ok": self.exit_code == SUCCESS,
            "files": list(self.config.sources),
            "plugins": [
                {"id": node.id, "state": node.state, "unloads": self.unloads.get(node.id)} for node in self.nodes
            ],
            "findings": [_document(found) for found in self.findings],
        }

    def _summary(self) -> list[Part]:
        enabled = [node for node in self.nodes if node.state != "disabled"]
        active = sum(node.state == "active" for node in enabled)
        clean = sum(self.unloads.values())
        word: Part = ("ok", "bold green") if self.exit_code == SUCCESS else ("found", "bold yellow")
        rest = f": {', '.join(self.config.sources)}: {counted(len(enabled), 'plugin')}, {active} active"
        return [word, f"{rest}, {clean} can be unloaded and loaded again"]


def _lines(found: Finding) -> Iterator[list[Part]]:
    yield [(str(found.severity), _STYLES[found.severity]), f": {found.message} ", (f"[{found.kind}]", "dim")]
    if found.place is not None and str(found.place) not in found.message:
        yield ["  ", ("code: ", "bold"), str(found.place)]
    if found.config is not None:
        place = ": ".join(filter(None, (str(found.config), format_path(found.path))))
        yield ["  ", ("config: ", "bold"), place]
    yield ["  ", ("do: ", "bold"), found.remedy]


def _document(found: Finding) -> dict[str, Any]:
    return {
        "kind": str(found.kind),
        "severity": str(found.severity),
        "plugin": found.plugin,
        "message": found.message,
        "remedy": found.remedy,
        "place": _place(found.place),
        "config": {**_place(found.config), "path": format_path(found.path) or None} if found.config else None,
    }


def _place(place: Location | None) -> Any:
    return {"file": place.file, "line": place.line} if place is not None else None
