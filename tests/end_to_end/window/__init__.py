"""The real window on a real engine process."""
