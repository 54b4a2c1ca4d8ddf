"""What is wrong with a host, and what to do about it: each module looks at one thing and yields findings.

::

    inspect        asks all of them
    activity       why a plugin is not active
    offers         who could provide a service
    wheels         entry points that clash, requirements that the installed versions do not meet
    visibility     tools that hide others, hooks that nobody asks
    told           whose threads they were, as the watchdog tells
    unloading      what a plugin leaves behind when it is unloaded
    finding        what they find
"""
