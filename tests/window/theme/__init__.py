"""Theme and design tokens."""
