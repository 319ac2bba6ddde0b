"""Readers of other programs' conversations, one module a format.

What becomes of them here is data/import_normalization.py. Start at registry.py.
"""
