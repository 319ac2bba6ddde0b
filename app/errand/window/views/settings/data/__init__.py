"""The settings page Data: sizes, export, import, other programs' sessions, cleanup. Start at page.py."""
