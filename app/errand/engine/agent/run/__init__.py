"""One task from start to end: state, limits, approvals, recording, resume.

Managing several tasks belongs to tasks/. Start at task_run.py; task_builder.py joins the parts.
"""
