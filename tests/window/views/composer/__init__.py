"""Tests of app/window/views/composer."""
