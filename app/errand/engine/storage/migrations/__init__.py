"""Alembic migrations; imported only if a database is older than the schema. Start at versions/."""
