"""The engine in this process; mirrors app/engine."""
