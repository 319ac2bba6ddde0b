"""Checks against programs of others that are installed for real; not part of `make test`."""
