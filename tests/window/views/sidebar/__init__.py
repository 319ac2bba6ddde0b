"""Tests of app/window/views/sidebar."""
