"""The commands of `errand`, one module per resource, each with its options.

What several commands share of following a task is `follow`. Start with run.py.
"""
