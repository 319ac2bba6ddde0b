"""How tasks and engines end: stop, shutdown, crash, idle."""
