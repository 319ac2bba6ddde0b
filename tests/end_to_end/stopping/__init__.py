"""Ends of tasks and engines: stop, shutdown, crash, idle."""
