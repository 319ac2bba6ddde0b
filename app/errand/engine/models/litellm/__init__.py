"""Providers through the litellm library, which runs in a process of its own.

`library_child.py` is that process, and the only importer of litellm. Start at model.py.
"""
