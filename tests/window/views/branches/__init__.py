"""Tests of app/errand/window/views/branches."""
