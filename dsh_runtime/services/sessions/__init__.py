"""The session log: every call and what became of it, in an embedded SQLite database.

Layering, lowest first: ``errors``, ``events``, ``bounds``; ``encode``, ``schema``; ``files``, ``owners``; ``log``,
``store``, ``reading``; ``prune``, ``follow``, ``config``, ``session``; ``short``; ``journal``; ``lazy``; ``service``.
"""

from __future__ import annotations

from dsh_runtime.services.sessions.config import SessionsConfig
from dsh_runtime.services.sessions.errors import LogError
from dsh_runtime.services.sessions.service import Sessions
from dsh_runtime.services.sessions.session import Session

__all__ = ["LogError", "Session", "Sessions", "SessionsConfig"]
