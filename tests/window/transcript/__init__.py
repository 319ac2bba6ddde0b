"""The virtual list with rows in memory."""
