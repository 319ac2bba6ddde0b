"""Tests of app/engine/agent, by its packages."""
