"""Tests of app/errand/window/views/composer."""
