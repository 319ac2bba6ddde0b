"""The WebSocket server: accept, handshake, dispatch, sessions, outboxes.

Work is done elsewhere; handlers only translate. Start at websocket_server.py.
"""
