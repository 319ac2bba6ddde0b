"""What SQLite and PostgreSQL share: tables, statements, the journal with group commit, reads, errors as text.

Knows no record types. Start at journal.py.
"""
