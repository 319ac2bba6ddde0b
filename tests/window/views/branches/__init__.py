"""Tests of app/window/views/branches."""
