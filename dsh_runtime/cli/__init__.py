"""The command line ``dsh-run``.

Layering, lowest first; nothing is imported from the host before a command runs::

    main
    app
    call  tools  plugins  check  config  mcp  completion  demo (by name alone)
    screen
    session  arguments  results  survey  installed
    running  logs  output (looks)
    options
    errors
    text
"""
