"""The engine in this process; mirrors app/errand/engine."""
