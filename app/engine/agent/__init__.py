"""The agent: the loop, the system prompt, history, compaction, one task's run, and which tasks there are.

No sockets, no SQL, no provider. Start at loop/loop.py, then run/task_run.py.
"""
