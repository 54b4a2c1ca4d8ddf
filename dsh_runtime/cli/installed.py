"""Whether a plugin is installed under a name."""

from __future__ import annotations

from dsh_runtime.loader.discover import AmbiguousNameError, find_installed


def is_installed(name: str) -> bool:
    """Whether a distribution has the entry point; if two have it, loading it will say so."""
    try:
        return find_installed(name) is not None
    except AmbiguousNameError:
        return True
