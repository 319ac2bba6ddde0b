"""Smaller pages of the search index, days of nodes, changes of files, facts, the audit of memory, forgotten texts.

From here on nodes, tasks and prompts hold notices as data, which an older Errand cannot read.
"""

from alembic import op
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_FORGETTING = """
WHEN NOT EXISTS (
    SELECT 1 FROM forgets JOIN tasks ON tasks.conversation_id = forgets.conversation_id WHERE tasks.id = old.task_id
)
"""

_DATED = """
CREATE TRIGGER nodes_dated AFTER INSERT ON nodes BEGIN
INSERT INTO node_days VALUES (substr(new.created_at, 1, 10), new.number, new.number)
ON CONFLICT (day) DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last);
END
"""
_DAYS = """
INSERT INTO node_days SELECT substr(created_at, 1, 10), min(number), max(number) FROM nodes GROUP BY 1
"""

_NUMBER = BigInteger().with_variant(Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "changes",
        Column("number", _NUMBER, primary_key=True),
        Column("id", Text, nullable=False, unique=True),
        Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
        Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
        Column("path", Text, nullable=False),
        Column("at", Text, nullable=False),
        Column("before", Text, nullable=False),
        Column("after", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_index("changes_by_task", "changes", ["task_id", "path"])
    op.create_index("changes_by_conversation", "changes", ["conversation_id", "task_id"])
    op.create_index("changes_by_path", "changes", ["path", "number"])
    op.create_index("changes_by_time", "changes", ["at"])
    op.create_table(
        "facts",
        Column("number", _NUMBER, primary_key=True),
        Column("id", Text, nullable=False, unique=True),
        Column("body", Text, nullable=False),
    )
    op.create_table(
        "memory_log",
        Column("number", _NUMBER, primary_key=True),
        Column("at", Text, nullable=False),
        Column("action", Text, nullable=False),
        Column("actor", Text, nullable=False),
        Column("about", Text, nullable=False),
    )
    op.create_table(
        "forgets",
        Column("conversation_id", Text, primary_key=True),
        Column("node_ids", Text, nullable=False),
        Column("files", Text, nullable=False),
        Column("actor", Text, nullable=False),
    )
    op.create_table(
        "node_days",
        Column("day", Text, primary_key=True),
        Column("first", _NUMBER, nullable=False),
        Column("last", _NUMBER, nullable=False),
    )
    connection = op.get_bind()
    connection.exec_driver_sql(_DAYS)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("DROP TRIGGER tool_executions_no_update")
        connection.exec_driver_sql(
            f"CREATE TRIGGER tool_executions_no_update BEFORE UPDATE ON tool_executions {_FORGETTING} "
            "BEGIN SELECT RAISE(ABORT, 'tool_executions is append-only'); END"
        )
        for verb in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER memory_log_no_{verb.lower()} BEFORE {verb} ON memory_log "
                "BEGIN SELECT RAISE(ABORT, 'memory_log is append-only'); END"
            )
        connection.exec_driver_sql(_DATED)
        connection.exec_driver_sql("INSERT INTO node_search (node_search, rank) VALUES ('pgsz', 1000)")


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
