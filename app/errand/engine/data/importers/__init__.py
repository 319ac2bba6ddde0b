"""Readers of other programs' conversations, one module per format.

data/import_normalization.py converts their results. Start at registry.py.
"""
