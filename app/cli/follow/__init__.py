"""Follows running tasks: events in, answers and interrupts out. What is printed is `rendering`. Start with watch.py."""
