"""The window offscreen; mirrors app/window. Whole behaviours are in end_to_end/window."""
