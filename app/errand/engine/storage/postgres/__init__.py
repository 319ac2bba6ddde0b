"""PostgreSQL in the place of SQLite: connecting, its schema, the writer. The driver is loaded only if the setting asks.

Tables and statements are those of sql/. Start at server.py.
"""
