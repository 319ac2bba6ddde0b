"""Tests of app/errand/window/views/shared."""
