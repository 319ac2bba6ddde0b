"""The window without a screen; mirrors app/window. Whole behaviours are in end_to_end/window."""
