"""Keeps a request within the model's context window: estimate, summary, truncation.

The stored tree is never rewritten. Start at context_window.py.
"""
