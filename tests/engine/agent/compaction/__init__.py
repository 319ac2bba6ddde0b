"""What a model still reads of a long conversation."""
