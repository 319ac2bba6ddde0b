"""Finds what was said and done, by words and by meaning. Start with search.py; embedding.py runs the model."""
