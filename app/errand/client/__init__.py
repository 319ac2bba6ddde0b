"""The connection to the engine for every client, engine launch, and texts shared by all clients.

No Qt, no terminal. Start at connection.py and launch.py.
"""
