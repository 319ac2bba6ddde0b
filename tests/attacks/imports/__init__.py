"""Forged files: imports, records, backups, names."""
