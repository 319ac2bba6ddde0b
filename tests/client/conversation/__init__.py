"""The model of a conversation, as nodes, events and deltas fill it."""
