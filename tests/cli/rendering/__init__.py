"""What is printed of events and asks."""
