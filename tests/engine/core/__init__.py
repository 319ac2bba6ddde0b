"""What all of the engine uses."""
