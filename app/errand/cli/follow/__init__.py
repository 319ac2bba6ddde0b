"""Follows running tasks: receives events, sends answers and interrupts; `rendering` makes text. Start at watch.py."""
