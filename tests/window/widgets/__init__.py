"""Generic controls."""
