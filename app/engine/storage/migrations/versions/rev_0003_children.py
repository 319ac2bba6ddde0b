"""The children of a node are found by it: forks, the newest branch, and deleting without looking through all nodes."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("nodes_by_parent", "nodes", ["parent_id", "conversation_id", "number"])


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
