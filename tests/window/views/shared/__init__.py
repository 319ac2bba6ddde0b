"""Tests of app/window/views/shared."""
