"""Tasks: runs of an agent on one request.

`groups.py` has the fields of a task by subject, `task.py` the task, `change.py` the groups that changed, `methods.py`
what clients call. Start at `task.py`.
"""
