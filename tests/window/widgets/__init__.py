"""Plain controls."""
