"""The commands that read the session log: ``log``, ``explain``, ``replay``. None of them loads a plugin.

Layering, lowest first: ``units``, ``source``; ``listing``, ``story``; ``follow``, ``telling``; ``foresee``; ``log``,
``explain``, ``replay``.
"""
