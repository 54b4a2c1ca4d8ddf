"""Names of tools as model providers accept them: up to 64 letters, digits, ``_`` and ``-``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

_SAFE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """For each name the one that a provider accepts; the name itself wherever it does."""
    found = sorted(names)
    return {name: name if _SAFE.fullmatch(name) else _made(name) for name in found}


def _made(name: str) -> str:
    """A name that says which it stands for; its digest keeps apart what is spelt alike."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '_', name)[:55]}_{digest}"
