"""The commands of `errand`, one module per resource, each with its options.

The package `follow` has the shared code for following a task. Start with run.py.
"""
