"""Tools as text."""
