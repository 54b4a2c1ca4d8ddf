"""Hot reload: put new versions of plugins in the place of those that run, as a transaction."""
