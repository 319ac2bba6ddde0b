"""Usage: cost and tokens by day, model and conversation."""
