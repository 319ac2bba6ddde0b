"""Calls as JSON under a schema, for small models on servers with constrained decoding. Start at `request.py`."""
