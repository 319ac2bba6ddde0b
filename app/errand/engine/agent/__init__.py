"""The agent: the loop, the system prompt, history, compaction, task runs and their lifecycle.

No sockets, SQL or provider code. Start at loop/loop.py, then run/task_run.py.
"""
