"""One task from its start to its end: state, limits, approvals, recording, resume.

Which tasks exist is tasks/. Start at task_run.py; task_builder.py joins the parts.
"""
