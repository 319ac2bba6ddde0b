"""Model servers that people run: what they serve and which kind they are, and the contract of those that Errand runs.

No model calls. Start at served_models.py.
"""
