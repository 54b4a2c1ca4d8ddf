"""Everything that is wrong with a host that has been started as far as it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsh_runtime.loader.discover import InstalledPlugin
from dsh_runtime.loader.host import Host

from .activity import not_active
from .finding import Finding, Kind, Severity, finding
from .offers import Offers
from .visibility import host_problems, shadowed_tools, unheard_hooks
from .wheels import clashing_names, unmet_requirements


def diagnose(host: Host, unused: Sequence[InstalledPlugin], wheels: Sequence[tuple[str, str]]) -> list[Finding]:
    """What is wrong; ``unused`` are the installed plugins that no row enables, ``wheels`` the ids and wheels in use."""
    return list(_diagnose(host, unused, wheels))


def _diagnose(host: Host, unused: Sequence[InstalledPlugin], wheels: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    inactive = list(not_active(host, Offers(host, unused)))
    yield from inactive
    yield from host_problems(host)
    yield from _stray_pins(host)
    yield from unmet_requirements(wheels)
    told = {found.plugin for found in inactive if found.kind is Kind.ENTRY_POINT}
    yield from clashing_names([row.use for row in host.config.rows if row.id in told])
    yield from shadowed_tools(host)
    yield from unheard_hooks(host)


def _stray_pins(host: Host) -> Iterator[Finding]:
    """Pins of plugins that the config does not have."""
    if host.config.pins is None:
        return
    from dsh_runtime.loader.pinned import stray_pins

    for problem in stray_pins(host.config):
        yield finding(Kind.PIN, Severity.ERROR, problem.message, config=problem.location, path=problem.path)
