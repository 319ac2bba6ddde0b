"""Tests of app/window/views/usage."""
