"""The engine process: runs agents, owns all data, serves clients over a WebSocket.

No Qt, no client. Start at main.py.
"""
