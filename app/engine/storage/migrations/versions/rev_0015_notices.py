"""Smaller pages of the search index. No table changes.

From here on nodes, tasks and prompts hold notices as data, which an older Errand cannot read.
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("INSERT INTO node_search (node_search, rank) VALUES ('pgsz', 1000)")


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
