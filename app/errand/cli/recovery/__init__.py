"""Backup, restore and repair of the database, without an engine. Start with backup.py."""
