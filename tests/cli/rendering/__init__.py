"""The text of events and asks."""
