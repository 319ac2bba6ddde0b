"""Providers through the litellm library, which runs in a separate thread.

The only importer of litellm. Start at model.py.
"""
