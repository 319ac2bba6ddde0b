"""Moves a turn's usage into columns, so that months are summed quickly, and adds the request's context."""

from alembic import op
from sqlalchemy import Column, Float, Integer, Text

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_AMOUNTS = ("cost_usd", "seconds")

_FILL = """
UPDATE turns SET
    conversation_id = (SELECT conversation_id FROM tasks WHERE tasks.id = turns.task_id),
    minute = CAST(strftime('%s', started_at) AS INTEGER) / 60,
    input_tokens = json_extract(usage, '$.inputTokens'),
    output_tokens = json_extract(usage, '$.outputTokens'),
    cache_read_tokens = json_extract(usage, '$.cacheReadTokens'),
    cache_write_tokens = json_extract(usage, '$.cacheWriteTokens'),
    cost_usd = json_extract(usage, '$.costUsd'),
    seconds = json_extract(usage, '$.seconds')
"""


def upgrade() -> None:
    op.add_column("turns", Column("conversation_id", Text))
    op.add_column("turns", Column("minute", Integer))
    for name in _COUNTS:
        op.add_column("turns", Column(name, Integer))
    for name in _AMOUNTS:
        op.add_column("turns", Column(name, Float))
    op.add_column("turns", Column("context", Text))
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_FILL)
    op.drop_column("turns", "usage")
    op.create_index("turns_by_time", "turns", ["minute", "model", "conversation_id", "turn", *_COUNTS, *_AMOUNTS])


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
