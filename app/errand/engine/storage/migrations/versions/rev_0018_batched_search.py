"""Nodes enter the search index together; days of nodes are written for some nodes; an index that no query used goes."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_INDEX_WAITING = """
    INSERT INTO node_search (rowid, conversation, facets, text)
    SELECT number, conversation, facets, text FROM node_texts
    WHERE number IN (SELECT number FROM node_unindexed) ORDER BY number
    ;DELETE FROM node_unindexed;
"""
_ADD = "INSERT OR IGNORE INTO node_unindexed VALUES (new.number);"
_REMOVE = """
INSERT INTO node_search (node_search, rowid, conversation, facets, text)
SELECT 'delete', number, conversation, facets, text FROM node_texts
WHERE number = old.number AND NOT EXISTS (SELECT 1 FROM node_unindexed WHERE number = old.number);
DELETE FROM node_unindexed WHERE number = old.number;
"""
_STATEMENTS = (
    "DROP TRIGGER nodes_indexed",
    "DROP TRIGGER nodes_leave",
    "DROP TRIGGER nodes_return",
    "DROP TRIGGER nodes_deleted",
    "DROP TRIGGER nodes_dated",
    "CREATE TABLE node_unindexed (number INTEGER PRIMARY KEY)",
    f"CREATE TRIGGER nodes_indexed AFTER INSERT ON nodes WHEN new.status <> 'streaming' BEGIN {_ADD} END",
    f"CREATE TRIGGER nodes_leave BEFORE UPDATE ON nodes WHEN old.status <> 'streaming' BEGIN {_REMOVE} END",
    f"CREATE TRIGGER nodes_return AFTER UPDATE ON nodes WHEN new.status <> 'streaming' BEGIN {_ADD} END",
    f"CREATE TRIGGER nodes_deleted BEFORE DELETE ON nodes WHEN old.status <> 'streaming' BEGIN {_REMOVE} END",
    "CREATE TRIGGER nodes_wait AFTER INSERT ON node_unindexed "
    f"WHEN (SELECT count(*) FROM node_unindexed) >= 16 BEGIN {_INDEX_WAITING} END",
    "CREATE TRIGGER nodes_rest AFTER UPDATE OF ended_at ON tasks "
    f"WHEN new.ended_at IS NOT NULL AND EXISTS (SELECT 1 FROM node_unindexed) BEGIN {_INDEX_WAITING} END",
    """
    CREATE TRIGGER nodes_dated AFTER INSERT ON nodes WHEN NOT EXISTS (
        SELECT 1 FROM node_days WHERE day = substr(new.created_at, 1, 10) AND new.number BETWEEN first AND last
    ) BEGIN
    INSERT INTO node_days VALUES (substr(new.created_at, 1, 10), new.number, new.number + 100)
    ON CONFLICT (day) DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last);
    END
    """,
)


def upgrade() -> None:
    op.drop_index("nodes_by_time", "nodes")
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for statement in _STATEMENTS:
            connection.exec_driver_sql(statement)


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
