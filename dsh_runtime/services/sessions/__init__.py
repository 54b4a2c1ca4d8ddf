"""The session log: every call and what became of it, in an embedded SQLite database.

Layering, lowest first: ``errors``, ``events``, ``bounds``; ``encode``, ``schema``; ``files``, ``owners``; ``log``,
``store``, ``reading``; ``prune``, ``follow``; ``service``.
"""

from __future__ import annotations

from dsh_runtime.services.sessions.errors import LogError
from dsh_runtime.services.sessions.service import Session, Sessions, SessionsConfig

__all__ = ["LogError", "Session", "Sessions", "SessionsConfig"]
