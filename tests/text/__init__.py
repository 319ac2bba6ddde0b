"""Texts that all clients and the engine share; mirrors app/errand/text."""
