"""Tests of app/errand/window/views/usage."""
