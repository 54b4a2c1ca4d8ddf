"""``dsh-run doctor``: every plugin that is not active, or could not be unloaded, with the remedy."""
