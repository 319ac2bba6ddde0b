"""Tests of app/errand/engine/agent, by its packages."""
