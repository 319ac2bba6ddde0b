"""Vectors of texts, made by a model in a process of its own. Start with embedding.py."""
