"""Tests of app/errand/window/views/sidebar."""
