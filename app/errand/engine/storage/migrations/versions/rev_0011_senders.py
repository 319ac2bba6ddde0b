"""Excludes engine messages from the sender "user". Older databases have none, so nothing is reindexed."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_BARE = "replace(replace(replace(replace(replace({0}, '-', ''), '_', ''), '.', ''), '/', ''), ':', '')"
_VIEW = f"""
CREATE VIEW node_texts AS
SELECT number, replace(replace(conversation_id, '-', ''), '_', '') AS conversation,
CASE role
WHEN 'user' THEN CASE json_extract(body, '$.author') WHEN 'engine' THEN '' ELSE 'fromuser' END
WHEN 'assistant' THEN 'fromagent by' || {_BARE.format("json_extract(body, '$.author')")}
ELSE '' END || coalesce((
    SELECT ' ' || group_concat('tool' || {_BARE.format("json_extract(block.value, '$.tool')")}, ' ')
    FROM json_each(nodes.body, '$.blocks') AS block
    WHERE json_extract(block.value, '$.type') IN ('toolCall', 'toolResult')
), '') AS facets, (
    SELECT substr(group_concat(substr(
        CASE json_extract(block.value, '$.type')
        WHEN 'toolCall' THEN (
            SELECT group_concat(atom, char(10)) FROM json_tree(block.value, '$.arguments') WHERE type = 'text'
        )
        WHEN 'file' THEN json_extract(block.value, '$.name')
        WHEN 'image' THEN json_extract(block.value, '$.name')
        ELSE json_extract(block.value, '$.text') END,
        1, 8000), char(10)), 1, 32000)
    FROM json_each(nodes.body, '$.blocks') AS block
    WHERE json_extract(block.value, '$.type') IN ('text', 'toolCall', 'toolResult', 'file', 'image')
) AS text
FROM nodes
"""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("DROP VIEW node_texts")
        connection.exec_driver_sql(_VIEW)


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
