"""Adds removal of conversations: the audit triggers let rows of conversations in `removals` be deleted."""

from alembic import op
from sqlalchemy import Column, Text

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_CONDITIONS = {
    "tool_executions": """
WHEN NOT EXISTS (
    SELECT 1 FROM removals JOIN tasks ON tasks.conversation_id = removals.conversation_id WHERE tasks.id = old.task_id
)
""",
    "grants": """
WHEN NOT EXISTS (
    SELECT 1 FROM removals WHERE json_extract(old.body, '$.scope') = 'conversation'
    AND json_extract(old.body, '$.scopeId') = removals.conversation_id
)
""",
}


def upgrade() -> None:
    op.create_table(
        "removals",
        Column("conversation_id", Text, primary_key=True),
        Column("files", Text, nullable=False),
    )
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for table, condition in _CONDITIONS.items():
            connection.exec_driver_sql(f"DROP TRIGGER {table}_no_delete")
            connection.exec_driver_sql(
                f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {condition} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
