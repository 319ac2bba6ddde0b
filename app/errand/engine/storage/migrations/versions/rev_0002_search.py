"""Adds full-text search over nodes and indexes existing ones. SQLite only; other databases search without it."""

from alembic import op

revision = "0002"
down_revision = "0001"
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
        ELSE json_extract(block.value, '$.text') END,
        1, 8000), char(10)), 1, 32000)
    FROM json_each(nodes.body, '$.blocks') AS block
    WHERE json_extract(block.value, '$.type') IN ('text', 'toolCall', 'toolResult')
) AS text
FROM nodes
"""

_INDEX = """
CREATE VIRTUAL TABLE node_search USING fts5(
    conversation, text, content='node_texts', content_rowid='number',
    columnsize=0, prefix='3 4 5', tokenize='unicode61 remove_diacritics 2'
)
"""

_ADD = """
INSERT INTO node_search (rowid, conversation, text)
SELECT number, conversation, text FROM node_texts WHERE number = new.number;
"""

_REMOVE = """
INSERT INTO node_search (node_search, rowid, conversation, text)
SELECT 'delete', number, conversation, text FROM node_texts WHERE number = old.number;
"""

_TRIGGERS = (
    f"CREATE TRIGGER nodes_indexed AFTER INSERT ON nodes WHEN new.status <> 'streaming' BEGIN {_ADD} END",
    f"CREATE TRIGGER nodes_leave BEFORE UPDATE ON nodes WHEN old.status <> 'streaming' BEGIN {_REMOVE} END",
    f"CREATE TRIGGER nodes_return AFTER UPDATE ON nodes WHEN new.status <> 'streaming' BEGIN {_ADD} END",
    f"CREATE TRIGGER nodes_deleted BEFORE DELETE ON nodes WHEN old.status <> 'streaming' BEGIN {_REMOVE} END",
)

_FILL = """
INSERT INTO node_search (rowid, conversation, text)
SELECT node_texts.number, conversation, text FROM node_texts
JOIN nodes ON nodes.number = node_texts.number WHERE nodes.status <> 'streaming'
"""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for statement in (_VIEW, _INDEX, *_TRIGGERS, _FILL):
            connection.exec_driver_sql(statement)


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
