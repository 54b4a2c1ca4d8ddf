"""``dsh-run new``: a project for a plugin, ready to be run, tested and shipped.

``names`` decides whether a name will do; ``project`` fills in the ``templates`` and writes them, beside nothing that
is there already; ``command`` is the command.
"""
