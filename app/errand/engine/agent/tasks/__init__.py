"""Task lifecycle: start, stop, resume after a restart, unread messages, locks, several agents in one conversation.

One task's execution is in run/. Start at runner.py.
"""
