"""The connection to the engine for every client, engine launch, and in texts/ the texts that all clients show.

No Qt, no terminal. Start at connection.py and launch.py.
"""
