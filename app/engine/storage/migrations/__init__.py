"""Alembic migrations; imported only when a database is older than the schema. Start at versions/."""
