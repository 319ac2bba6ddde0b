"""Views by folder, as in app/errand/window/views."""
