"""The window offscreen; mirrors app/errand/window. Whole behaviours are in end_to_end/window."""
