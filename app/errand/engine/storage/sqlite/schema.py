"""What SQLite needs beside the tables: the triggers that keep the audit append-only, and the full-text indexes."""

from errand.engine.storage.sqlite.search_index import CREATE_SEARCH, CREATE_TITLES

_REFUSE = "BEGIN SELECT RAISE(ABORT, '{0} is append-only'); END"

_EXECUTION_STAYS = """
WHEN NOT EXISTS (
    SELECT 1 FROM removals JOIN tasks ON tasks.conversation_id = removals.conversation_id WHERE tasks.id = old.task_id
)
"""

_EXECUTION_IS_KEPT = """
WHEN NOT EXISTS (
    SELECT 1 FROM forgets JOIN tasks ON tasks.conversation_id = forgets.conversation_id WHERE tasks.id = old.task_id
)
"""

# A grant for a workspace belongs to no conversation, wherever it was granted.
_GRANT_STAYS = """
WHEN NOT EXISTS (
    SELECT 1 FROM removals WHERE json_extract(old.body, '$.scope') = 'conversation'
    AND json_extract(old.body, '$.scopeId') = removals.conversation_id
)
"""

_GUARDS = tuple(
    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} {condition} {_REFUSE.format(table)}"
    for table, condition_of_update, condition_of_delete in (
        ("tool_executions", _EXECUTION_IS_KEPT, _EXECUTION_STAYS),
        ("grants", "", _GRANT_STAYS),
        ("memory_log", "", ""),
    )
    for verb, condition in (("UPDATE", condition_of_update), ("DELETE", condition_of_delete))
)

# In this order, after the tables.
CREATE = (*_GUARDS, *CREATE_SEARCH, *CREATE_TITLES)
