"""A SQLite file: opening it, its schema, backups, the threads that read and write.

What it shares with PostgreSQL is in sql/. Start at engines.py.
"""
