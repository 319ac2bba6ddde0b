"""Files that somebody made up: imports, records, backups, names."""
