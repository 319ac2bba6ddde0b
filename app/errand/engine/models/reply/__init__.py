"""Builds one reply from deltas: content within limits, events, token usage.

Independent of any provider's format. Start at builder.py.
"""
