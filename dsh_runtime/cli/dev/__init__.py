"""``dsh-run dev``: work on a plugin while it runs.

::

    command    what was typed
    working    the host, from its start to its end
    board      what there is to see, as values
    plain      the board as lines, or as JSON
    live       the board on one screen
    calls      the calls that are repeated
    adding     the config, with the plugin in it that is worked on
    target     the plugin at a path
    project    what a folder holds
"""
