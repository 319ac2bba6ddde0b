"""Tools over plain text."""
