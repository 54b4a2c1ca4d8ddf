"""Read ``dsh.toml``, find the plugins that it names, and build their configs.

Imports run one way: a module may use those of the rows below its own::

    pinned
    content
    load       resolve        plugin_config   show
    include    discover       explain         json_schema
    merge      blame          strict          find
    check      substitute     document        revalidate
    model      target
    pin
    settings   nodes
    positions  files          ownership
    errors

``ownership`` says whose code a file is. Beside them ``leftovers`` says what still runs, and ``reload/``,
``autoreload/``, ``watchdog/`` and ``doctor/`` look after a host that is open.
"""
