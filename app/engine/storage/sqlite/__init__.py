"""The database itself: schema, opening, backups, the journal with group commit, reader and writer.

Knows no kind of record. Start at journal.py.
"""
