"""One open conversation on a real engine."""
