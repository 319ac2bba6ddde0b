"""What the tasks of a conversation changed in files, for the review: listed, compared, undone and redone.

Start at changes.py.
"""
