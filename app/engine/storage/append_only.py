"""Triggers of SQLite that refuse to change or delete rows of the audit."""

_TABLES = ("tool_executions", "grants")

CREATE_GUARDS = tuple(
    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    for table in _TABLES
    for verb in ("UPDATE", "DELETE")
)
