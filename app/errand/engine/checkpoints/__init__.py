"""Checkpoints: what tasks change in files, kept so that it can be compared, undone and redone (decision 41).

`recorder.py` is what a task's tools use. `undo.py` answers the clients; `history.py` has the rules, `contents.py` the
stored bytes. Git is not used, and the workspace is never scanned.
"""
