"""Views by folder, as in app/window/views."""
