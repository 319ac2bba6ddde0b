"""The database: one journal of writes, pooled reads, one store for each kind of record.

Knows protocol structs, no task and no client. Start at database.py.
"""
