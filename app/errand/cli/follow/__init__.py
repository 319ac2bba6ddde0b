"""The following of running tasks: typed answers, interrupts and exit codes. Start at follower.py.

`errand.client.conversation.task_watcher` receives the events, `rendering` makes text of them.
"""
