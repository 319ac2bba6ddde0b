"""The initial tables, and the triggers that keep the audit append-only."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, PrimaryKeyConstraint, Text, text

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_NUMBER = BigInteger().with_variant(Integer(), "sqlite")


def upgrade() -> None:
    _conversations()
    _tasks()
    _audit()
    _log()
    if op.get_bind().dialect.name == "sqlite":
        for table in ("tool_executions", "grants"):
            for verb in ("UPDATE", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
                )


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")


def _conversations() -> None:
    op.create_table(
        "conversations",
        Column("id", Text, primary_key=True),
        Column("title", Text, nullable=False),
        Column("updated_at", Text, nullable=False),
        Column("archived", Boolean, nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_index("conversations_by_change", "conversations", ["archived", "updated_at", "id"])
    op.create_table(
        "nodes",
        Column("number", _NUMBER, primary_key=True),
        Column("id", Text, nullable=False, unique=True),
        Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
        Column("parent_id", Text, ForeignKey("nodes.id")),
        Column("role", Text, nullable=False),
        Column("status", Text, nullable=False),
        Column("created_at", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_index("nodes_by_conversation", "nodes", ["conversation_id", "number"])
    op.create_index(
        "nodes_streaming",
        "nodes",
        ["status"],
        sqlite_where=text("status = 'streaming'"),
    )
    op.create_table(
        "personalities",
        Column("id", Text, primary_key=True),
        Column("name", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_table(
        "agents",
        Column("id", Text, primary_key=True),
        Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
        Column("created_at", Text, nullable=False),
        Column("version", Integer, nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_index("agents_by_conversation", "agents", ["conversation_id", "created_at"])


def _tasks() -> None:
    op.create_table(
        "tasks",
        Column("id", Text, primary_key=True),
        Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
        Column("status", Text, nullable=False),
        Column("started_at", Text, nullable=False),
        Column("ended_at", Text),
        Column("body", Text, nullable=False),
    )
    op.create_index("tasks_by_start", "tasks", ["started_at", "id"])
    op.create_index("tasks_by_conversation", "tasks", ["conversation_id", "started_at"])
    op.create_index(
        "tasks_active",
        "tasks",
        ["started_at"],
        sqlite_where=text("ended_at IS NULL"),
    )
    op.create_table(
        "turns",
        Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
        Column("turn", Integer, nullable=False),
        Column("status", Text, nullable=False),
        Column("model", Text, nullable=False),
        Column("started_at", Text),
        Column("finished_at", Text),
        Column("usage", Text),
        Column("plan", Text),
        PrimaryKeyConstraint("task_id", "turn"),
    )
    op.create_table(
        "asks",
        Column("id", Text, primary_key=True),
        Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
        Column("status", Text, nullable=False),
        Column("created_at", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_index("asks_by_status", "asks", ["status", "created_at"])
    op.create_index("asks_by_task", "asks", ["task_id", "created_at"])


def _audit() -> None:
    op.create_table(
        "tool_executions",
        Column("number", _NUMBER, primary_key=True),
        Column("execution_id", Text, nullable=False),
        Column("phase", Text, nullable=False),
        Column("task_id", Text, ForeignKey("tasks.id"), nullable=False),
        Column("at", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_index("tool_executions_by_phase", "tool_executions", ["execution_id", "phase"], unique=True)
    op.create_index("tool_executions_by_task", "tool_executions", ["task_id", "number"])
    op.create_table(
        "grants",
        Column("number", _NUMBER, primary_key=True),
        Column("grant_id", Text, nullable=False),
        Column("action", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    op.create_index("grants_by_id", "grants", ["grant_id", "number"])


def _log() -> None:
    op.create_table("meta", Column("name", Text, primary_key=True), Column("value", Text, nullable=False))
    op.create_table(
        "events",
        Column("sequence", _NUMBER, primary_key=True, autoincrement=False),
        Column("conversation_id", Text),
        Column("body", Text, nullable=False),
    )
    op.create_table(
        "commands",
        Column("client_id", Text, nullable=False),
        Column("command_id", Text, nullable=False),
        Column("method", Text, nullable=False),
        Column("result", Text, nullable=False),
        Column("at", Text, nullable=False),
        PrimaryKeyConstraint("client_id", "command_id"),
    )
    op.create_index("commands_by_time", "commands", ["at"])
