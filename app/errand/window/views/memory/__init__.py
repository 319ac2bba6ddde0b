"""The window of memory: entries, facts, its state, and what is left out of it. Start with dialog.py."""
