"""Runs programs of others against a scripted model, so that they write sessions; `__main__.py` imports these."""
