"""Triggers of SQLite that refuse to change or delete rows of the audit.

The one way out is the removal of a whole conversation: while its id stands in `removals`, its rows may go.
"""

_REFUSE = "BEGIN SELECT RAISE(ABORT, '{0} is append-only'); END"

_EXECUTION_STAYS = """
WHEN NOT EXISTS (
    SELECT 1 FROM removals JOIN tasks ON tasks.conversation_id = removals.conversation_id WHERE tasks.id = old.task_id
)
"""

# A grant for a workspace belongs to no conversation, whoever gave it where.
_GRANT_STAYS = """
WHEN NOT EXISTS (
    SELECT 1 FROM removals WHERE json_extract(old.body, '$.scope') = 'conversation'
    AND json_extract(old.body, '$.scopeId') = removals.conversation_id
)
"""

CREATE_GUARDS = tuple(
    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} {condition} {_REFUSE.format(table)}"
    for table, condition_of_delete in (("tool_executions", _EXECUTION_STAYS), ("grants", _GRANT_STAYS))
    for verb, condition in (("UPDATE", ""), ("DELETE", condition_of_delete))
)
