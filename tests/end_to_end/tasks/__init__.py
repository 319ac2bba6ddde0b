"""Tasks from start to exit code, from the command line and by clients."""
