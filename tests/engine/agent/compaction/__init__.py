"""The part of a long conversation that a model reads."""
