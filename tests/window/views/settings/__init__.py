"""Tests of app/window/views/settings."""
