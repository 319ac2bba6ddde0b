"""Tests of app/errand/window/views/settings."""
