"""Streamable HTTP: many clients at once, each known by its token.

Layering, lowest first: ``tokens``, ``origins``, ``replies``; ``body``, ``refusals``; ``clients``; ``mailbox``;
``desk``; ``exchange``; ``modern``, ``sessions``; ``app``; ``listen``. Requests of the protocols with a handshake belong
to a session; since 2026-07-28 each stands alone, and all of a token's go through one session of the host's.
"""
