"""The loop without storage: turns, batches, order of events."""
