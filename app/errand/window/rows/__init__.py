"""The kinds of transcript rows: each view with its spacing and its text forms.

The rows as plain data, and what selects them, are in `errand.client.conversation`; `transcript` lays them out. Asks are
in `asks`, tool calls in `tools`. Start with reply.py.
"""
