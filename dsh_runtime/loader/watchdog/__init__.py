"""Looks after buggy plugins: one that holds the event loop is named with the place, as is a thread it leaves.

::

    watch      a thread beside the event loop, and what it looks at
    pulse      whether the event loop goes on
    strays     threads that outlive the plugin that began them
"""
