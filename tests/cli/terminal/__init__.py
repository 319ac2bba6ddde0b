"""Text and Markdown on a terminal."""
