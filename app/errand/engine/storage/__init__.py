"""The database: one journal of writes, pooled reads, one store for each kind of record.

Uses protocol structs; knows neither tasks nor clients. Start at database.py.
"""
