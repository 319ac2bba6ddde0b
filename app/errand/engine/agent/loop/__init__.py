"""The agent loop: model call, tool calls, queues, events.

Knows hooks only: no task, storage or permission. Start at loop.py; specs/agent-loop.md is its contract.
"""
