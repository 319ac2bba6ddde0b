"""Adds the names of attached files to the search. Existing nodes have none and need no reindexing."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_VIEW = """
CREATE VIEW node_texts AS
SELECT number, replace(replace(conversation_id, '-', ''), '_', '') AS conversation, (
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
        for statement in ("DROP VIEW node_texts", _VIEW):
            connection.exec_driver_sql(statement)


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
