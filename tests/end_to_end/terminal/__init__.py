"""The real terminal: what is shown and typed."""
