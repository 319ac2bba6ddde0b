"""Changes no table: from here on nodes, tasks and prompts hold notices as data, which an older Errand cannot read."""

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
