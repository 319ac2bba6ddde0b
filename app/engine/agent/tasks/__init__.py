"""All tasks: start, stop, hand over after a restart, locks, several agents in one conversation.

What happens inside a task is run/. Start at runner.py.
"""
