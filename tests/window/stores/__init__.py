"""Stores on a real engine."""
