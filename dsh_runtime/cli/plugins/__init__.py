"""``dsh-run plugins``: what is there, what is pinned, and how it hangs together.

``command`` holds the commands; ``listing``, ``pinning`` and ``drawing`` do their work. Below them: ``pin_text`` edits a
config, ``graph`` reads the graph off a host, ``graph_text`` and ``graph_svg`` draw it.
"""
