"""What was used: money and tokens by day, model and conversation."""
