"""A host for programs that are not on trio: on asyncio, or without an event loop.

The host runs in a thread of its own. ``call`` blocks, ``acall`` is awaited under asyncio, and both cancel both ways:
who gives up a call aborts it, and a host that closes aborts its calls. ``pydantic_ai``, ``langchain`` and ``openai``
give a host's tools to those frameworks.

Layering, lowest first: ``thread``; ``host``; ``names``; ``openai``, ``pydantic_ai``, ``langchain``.
"""

from dsh_runtime.embed.host import EmbeddedHost, HostClosedError, Session

__all__ = ["EmbeddedHost", "HostClosedError", "Session"]
