"""Providers reached through the litellm library, which runs in a thread of its own.

The only importer of litellm. Start at model.py.
"""
