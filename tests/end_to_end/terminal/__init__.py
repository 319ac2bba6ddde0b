"""A real terminal: display and input."""
