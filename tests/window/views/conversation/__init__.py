"""Tests of app/errand/window/views/conversation."""
