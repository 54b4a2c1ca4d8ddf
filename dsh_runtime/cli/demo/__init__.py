"""``dsh-run demo``: a tour of what happens to a call.

Layering, lowest first: ``folder``, ``watch``; ``steps``; ``show``; ``command``.
"""
