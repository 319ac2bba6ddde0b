"""Adds a column for pins, and full-text search over titles, with existing ones indexed."""

from alembic import op
from sqlalchemy import Boolean, Column, false

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_INDEX = """
CREATE VIRTUAL TABLE title_search USING fts5(
    id UNINDEXED, word, title, columnsize=0, prefix='1 2 3', tokenize='unicode61 remove_diacritics 2'
)
"""

_ADD = """
INSERT INTO title_search (id, word, title)
VALUES (new.id, replace(replace(new.id, '-', ''), '_', ''), new.title);
"""

_REMOVE = """
DELETE FROM title_search WHERE id = old.id AND rowid IN (
    SELECT rowid FROM title_search
    WHERE title_search MATCH 'word : "' || replace(replace(replace(old.id, '-', ''), '_', ''), '"', '') || '"'
);
"""

_MOVED = "old.title <> new.title OR old.updated_at <> new.updated_at"

_TRIGGERS = (
    f"CREATE TRIGGER titles_indexed AFTER INSERT ON conversations BEGIN {_ADD} END",
    f"CREATE TRIGGER titles_moved AFTER UPDATE ON conversations WHEN {_MOVED} BEGIN {_REMOVE} {_ADD} END",
    f"CREATE TRIGGER titles_deleted AFTER DELETE ON conversations BEGIN {_REMOVE} END",
)

_FILL = """
INSERT INTO title_search (id, word, title)
SELECT id, replace(replace(id, '-', ''), '_', ''), title FROM conversations ORDER BY updated_at, id
"""

_PINS = "UPDATE conversations SET pinned = 1 WHERE json_extract(body, '$.pinned')"


def upgrade() -> None:
    op.add_column("conversations", Column("pinned", Boolean, nullable=False, server_default=false()))
    op.create_index("conversations_by_pin", "conversations", ["archived", "pinned", "updated_at", "id"])
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for statement in (_PINS, _INDEX, *_TRIGGERS, _FILL):
            connection.exec_driver_sql(statement)


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
