"""What is wrong with the wheels that plugins come in: names claimed twice, requirements that are not met."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from dsh_runtime.loader.discover import InstalledPlugin, claims
from dsh_runtime.loader.errors import quoted

from .finding import Finding, Kind, Severity, finding


def clashing_names(used: Sequence[str]) -> Iterator[Finding]:
    """Entry points that several wheels claim, but for those that a plugin of the config has failed by."""
    by_name: dict[str, list[InstalledPlugin]] = defaultdict(list)
    for plugin in claims():
        by_name[plugin.name].append(plugin)
    for name, plugins in sorted(by_name.items()):
        if len(plugins) > 1 and name not in used:
            owners = " and ".join(f"{plugin.distribution} {plugin.version}" for plugin in plugins)
            text = f"entry point {quoted(name)} is claimed by {owners}, so that no config can use it; uninstall one"
            yield finding(Kind.ENTRY_POINT, Severity.WARNING, text)


def unmet_requirements(wheels: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """What the wheels of enabled plugins (their ids and names) require and do not have."""
    for plugin, wheel in wheels:
        try:
            requirements = distribution(wheel).requires or []
        except PackageNotFoundError:
            continue
        for text in requirements:
            problem = _problem(text)
            if problem is not None:
                what = f"plugin {plugin!r} ({wheel}) requires {problem[0]}; {problem[1]}"
                yield finding(Kind.VERSION, Severity.WARNING, what, plugin=plugin)


def _problem(text: str) -> tuple[str, str] | None:
    """What of a requirement is not met, and the remedy."""
    try:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            return None
        name, specifier = wanted.name, wanted.specifier
        found: Distribution = distribution(name)
        if specifier.contains(Version(found.version), prereleases=True):
            return None
    except PackageNotFoundError:
        return f"{wanted.name}{wanted.specifier}, which is not installed", f"install {wanted.name}{wanted.specifier}"
    except (InvalidRequirement, InvalidVersion, TypeError):
        return None
    return (
        f"{name}{specifier}, and {name} {found.version} is installed",
        f"install {name}{specifier}, or a version of the plugin that fits {name} {found.version}",
    )
