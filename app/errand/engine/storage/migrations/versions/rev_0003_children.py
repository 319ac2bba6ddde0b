"""Adds an index of a node's children: for forks, the newest branch, and deletion without a full scan."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("nodes_by_parent", "nodes", ["parent_id", "conversation_id", "number"])


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
