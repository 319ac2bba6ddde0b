"""Tests of app/errand/window/views/shell."""
