"""The WebSocket server: accept, handshake, dispatch, sessions, outboxes.

Handlers only translate; the work is done in other packages. Start at websocket_server.py.
"""
