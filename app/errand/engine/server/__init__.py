"""The WebSocket server: accept, authentication, dispatch, sessions, outboxes.

Handlers only translate; the work is done in other packages. Start at websocket_server.py.
"""
