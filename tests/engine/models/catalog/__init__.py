"""Lists, prices, routing."""
