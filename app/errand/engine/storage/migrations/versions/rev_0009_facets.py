"""Adds sender and tools of a node to the full-text index, which is rebuilt, and an index on time."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_BARE = "replace(replace(replace(replace(replace({0}, '-', ''), '_', ''), '.', ''), '/', ''), ':', '')"
_VIEW = f"""
CREATE VIEW node_texts AS
SELECT number, replace(replace(conversation_id, '-', ''), '_', '') AS conversation,
CASE role
WHEN 'user' THEN 'fromuser'
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
_INDEX = """
CREATE VIRTUAL TABLE node_search USING fts5(
    conversation, facets, text, content='node_texts', content_rowid='number',
    columnsize=0, prefix='3 4 5', tokenize='unicode61 remove_diacritics 2'
)
"""
_ADD = """
INSERT INTO node_search (rowid, conversation, facets, text)
SELECT number, conversation, facets, text FROM node_texts WHERE number = new.number;
"""
_REMOVE = """
INSERT INTO node_search (node_search, rowid, conversation, facets, text)
SELECT 'delete', number, conversation, facets, text FROM node_texts WHERE number = old.number;
"""
_TRIGGERS = (
    f"CREATE TRIGGER nodes_indexed AFTER INSERT ON nodes WHEN new.status <> 'streaming' BEGIN {_ADD} END",
    f"CREATE TRIGGER nodes_leave BEFORE UPDATE ON nodes WHEN old.status <> 'streaming' BEGIN {_REMOVE} END",
    f"CREATE TRIGGER nodes_return AFTER UPDATE ON nodes WHEN new.status <> 'streaming' BEGIN {_ADD} END",
    f"CREATE TRIGGER nodes_deleted BEFORE DELETE ON nodes WHEN old.status <> 'streaming' BEGIN {_REMOVE} END",
)
_NAMES = ("nodes_indexed", "nodes_leave", "nodes_return", "nodes_deleted")
_OLD = (*(f"DROP TRIGGER {name}" for name in _NAMES), "DROP TABLE node_search", "DROP VIEW node_texts")
_FILL = """
INSERT INTO node_search (rowid, conversation, facets, text)
SELECT node_texts.number, conversation, facets, text FROM node_texts
JOIN nodes ON nodes.number = node_texts.number WHERE nodes.status <> 'streaming'
"""
_AGENTS = "CREATE INDEX agents_by_name ON agents (lower(json_extract(body, '$.name')))"


def upgrade() -> None:
    op.create_index("nodes_by_time", "nodes", ["created_at", "number"])
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for statement in (*_OLD, _VIEW, _INDEX, *_TRIGGERS, _FILL, _AGENTS):
            connection.exec_driver_sql(statement)


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
