"""A task's record as a file, and its replay with a recorded model, tools and person.

Start at format.py, then replay.py.
"""
