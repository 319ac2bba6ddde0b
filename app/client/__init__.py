"""A connection to the engine for every client, finding and starting it, and texts all clients share.

No Qt, no terminal. Start at connection.py and launch.py.
"""
