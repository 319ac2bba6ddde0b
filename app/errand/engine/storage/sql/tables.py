"""The tables. Columns are those that queries need; `body` is the complete protocol struct as JSON text."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    false,
    text,
)

# Partial indexes for SQLite only: naming another database would import its dialect at every start (30 ms).
metadata = MetaData()

# SQLite assigns row numbers only to columns of type INTEGER.
_Number = BigInteger().with_variant(Integer(), "sqlite")
# Compared byte by byte everywhere, in whatever language a server sorts: times, ids and cursors are texts.
_Text = Text().with_variant(Text(collation="C"), "postgresql")

meta = Table("meta", metadata, Column("name", _Text, primary_key=True), Column("value", _Text, nullable=False))

conversations = Table(
    "conversations",
    metadata,
    Column("id", _Text, primary_key=True),
    Column("title", _Text, nullable=False),
    Column("updated_at", _Text, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("body", _Text, nullable=False),
    Column("pinned", Boolean, nullable=False, server_default=false()),
    Index("conversations_by_change", "archived", "updated_at", "id"),
    Index("conversations_by_pin", "archived", "pinned", "updated_at", "id"),
)

# `number` counts nodes in order of first storage: the order of search results.
nodes = Table(
    "nodes",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", _Text, nullable=False, unique=True),
    Column("conversation_id", _Text, ForeignKey("conversations.id"), nullable=False),
    Column("parent_id", _Text, ForeignKey("nodes.id")),
    Column("role", _Text, nullable=False),
    Column("status", _Text, nullable=False),
    Column("created_at", _Text, nullable=False),
    Column("body", _Text, nullable=False),
    Index("nodes_by_conversation", "conversation_id", "number"),
    Index("nodes_by_parent", "parent_id", "conversation_id", "number"),
    Index(
        "nodes_streaming",
        "status",
        sqlite_where=text("status = 'streaming'"),
    ),
)

# The smallest number of the nodes of a day (in UTC), and one that is not below the largest: the range in which a search
# by date looks. Days of deleted nodes stay.
node_days = Table(
    "node_days",
    metadata,
    Column("day", _Text, primary_key=True),
    Column("first", _Number, nullable=False),
    Column("last", _Number, nullable=False),
)

personalities = Table(
    "personalities",
    metadata,
    Column("id", _Text, primary_key=True),
    Column("name", _Text, nullable=False),
    Column("body", _Text, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("id", _Text, primary_key=True),
    Column("conversation_id", _Text, ForeignKey("conversations.id"), nullable=False),
    Column("created_at", _Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("body", _Text, nullable=False),
    Index("agents_by_conversation", "conversation_id", "created_at"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", _Text, primary_key=True),
    Column("conversation_id", _Text, ForeignKey("conversations.id"), nullable=False),
    Column("status", _Text, nullable=False),
    Column("started_at", _Text, nullable=False),
    Column("ended_at", _Text),
    Column("body", _Text, nullable=False),
    Index("tasks_by_start", "started_at", "id"),
    Index("tasks_by_conversation", "conversation_id", "started_at"),
    Index("tasks_active", "started_at", sqlite_where=text("ended_at IS NULL")),
)

# What a task was started with, which may be long. Not in the task's row, which is rewritten with every change.
task_requests = Table(
    "task_requests",
    metadata,
    Column("task_id", _Text, ForeignKey("tasks.id"), primary_key=True),
    Column("body", _Text, nullable=False),
)

# The parts of the system prompt. Not in the task's row, which is rewritten with every change of the task.
prompts = Table(
    "prompts",
    metadata,
    Column("task_id", _Text, ForeignKey("tasks.id"), primary_key=True),
    Column("parts", _Text, nullable=False),
)

# One row per model call: inserted as `started` before the call, completed after it. `minute` counts from 1970 in UTC;
# `context` is the request's size by part. The index covers all columns of a usage report.
turns = Table(
    "turns",
    metadata,
    Column("task_id", _Text, ForeignKey("tasks.id"), nullable=False),
    Column("turn", Integer, nullable=False),
    Column("status", _Text, nullable=False),
    Column("model", _Text, nullable=False),
    Column("started_at", _Text),
    Column("finished_at", _Text),
    Column("plan", _Text),
    Column("conversation_id", _Text),
    Column("minute", Integer),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("cache_read_tokens", Integer),
    Column("cache_write_tokens", Integer),
    Column("cost_usd", Float),
    Column("seconds", Float),
    Column("context", _Text),
    Column("estimated", Integer, nullable=False, server_default="0"),
    PrimaryKeyConstraint("task_id", "turn"),
    Index(
        "turns_by_time",
        "minute",
        "model",
        "conversation_id",
        "turn",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "cost_usd",
        "seconds",
        "estimated",
    ),
)

# Append-only: one row for each phase of a tool call, `started` and `finished`.
tool_executions = Table(
    "tool_executions",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("execution_id", _Text, nullable=False),
    Column("phase", _Text, nullable=False),
    Column("task_id", _Text, ForeignKey("tasks.id"), nullable=False),
    Column("at", _Text, nullable=False),
    Column("body", _Text, nullable=False),
    Index("tool_executions_by_phase", "execution_id", "phase", unique=True),
    Index("tool_executions_by_task", "task_id", "number"),
)

asks = Table(
    "asks",
    metadata,
    Column("id", _Text, primary_key=True),
    Column("task_id", _Text, ForeignKey("tasks.id"), nullable=False),
    Column("status", _Text, nullable=False),
    Column("created_at", _Text, nullable=False),
    Column("body", _Text, nullable=False),
    Index("asks_by_status", "status", "created_at"),
    Index("asks_by_task", "task_id", "created_at"),
)

# Append-only: the newest row of a grant is its state.
grants = Table(
    "grants",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("grant_id", _Text, nullable=False),
    Column("action", _Text, nullable=False),
    Column("body", _Text, nullable=False),
    Index("grants_by_id", "grant_id", "number"),
)

events = Table(
    "events",
    metadata,
    Column("sequence", _Number, primary_key=True, autoincrement=False),
    Column("conversation_id", _Text),
    Column("body", _Text, nullable=False),
)

# Changes of files by tasks, in the order in which they were recorded. `before` and `after` name stored contents.
changes = Table(
    "changes",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", _Text, nullable=False, unique=True),
    Column("task_id", _Text, ForeignKey("tasks.id"), nullable=False),
    Column("conversation_id", _Text, ForeignKey("conversations.id"), nullable=False),
    Column("path", _Text, nullable=False),
    Column("at", _Text, nullable=False),
    Column("before", _Text, nullable=False),
    Column("after", _Text, nullable=False),
    Column("body", _Text, nullable=False),
    Index("changes_by_task", "task_id", "path"),
    Index("changes_by_conversation", "conversation_id", "task_id"),
    Index("changes_by_path", "path", "number"),
    Index("changes_by_time", "at"),
)

# What a person pinned or an agent proposed. The conversation and the node of a fact may have been deleted.
facts = Table(
    "facts",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("id", _Text, nullable=False, unique=True),
    Column("body", _Text, nullable=False),
)

# Append-only: what was done with memory.
memory_log = Table(
    "memory_log",
    metadata,
    Column("number", _Number, primary_key=True),
    Column("at", _Text, nullable=False),
    Column("action", _Text, nullable=False),
    Column("actor", _Text, nullable=False),
    Column("about", _Text, nullable=False),
)

# The result of each command of each client: a command sent twice is executed once, also across restarts.
commands = Table(
    "commands",
    metadata,
    Column("client_id", _Text, nullable=False),
    Column("command_id", _Text, nullable=False),
    Column("method", _Text, nullable=False),
    Column("result", _Text, nullable=False),
    Column("at", _Text, nullable=False),
    PrimaryKeyConstraint("client_id", "command_id"),
    Index("commands_by_time", "at"),
)

# Texts that are being forgotten: `node_ids` of a conversation, and the absolute paths of `files`, as JSON.
forgets = Table(
    "forgets",
    metadata,
    Column("conversation_id", _Text, primary_key=True),
    Column("node_ids", _Text, nullable=False),
    Column("files", _Text, nullable=False),
    Column("actor", _Text, nullable=False),
)

# Removed conversations whose files may still exist.
removals = Table(
    "removals",
    metadata,
    Column("conversation_id", _Text, primary_key=True),
    Column("files", _Text, nullable=False),
)
