"""Read ``dsh.toml``, find the plugins that it names, and build their configs.

Imports run one way; each line may use those below it::

    load      resolve   plugin_config   show
    include   merge     explain         strict   json_schema
    check     substitute                discover find
    document  model
    settings  nodes     target
    positions
    files     errors
"""
