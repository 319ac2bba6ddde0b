"""Shared basics of the engine."""
