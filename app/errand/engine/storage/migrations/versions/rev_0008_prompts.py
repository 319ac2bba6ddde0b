"""Adds the system prompt of each task, for resumed tasks and the record."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Text

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "prompts",
        Column("task_id", Text, ForeignKey("tasks.id"), primary_key=True),
        Column("parts", Text, nullable=False),
    )


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
