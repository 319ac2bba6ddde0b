"""The database itself: schema, opening, backups, the journal with group commit, reader and writer.

Knows no record types. Start at journal.py.
"""
