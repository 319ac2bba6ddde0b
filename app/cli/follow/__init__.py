"""Follows running tasks: receives events, sends answers and interrupts. `rendering` makes the text. Start at
watch.py."""
