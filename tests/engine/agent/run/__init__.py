"""The life of one task on a real engine."""
