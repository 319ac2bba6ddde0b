"""One task's life on a real engine."""
