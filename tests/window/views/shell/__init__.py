"""Tests of app/window/views/shell."""
