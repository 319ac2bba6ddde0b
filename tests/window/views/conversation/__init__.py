"""Tests of app/window/views/conversation."""
