"""Providers, model servers, sharing, limits and usage."""
