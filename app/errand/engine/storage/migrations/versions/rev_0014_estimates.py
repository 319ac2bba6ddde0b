"""Adds whether a turn's tokens were counted by the provider or are estimated."""

from alembic import op
from sqlalchemy import Column, Integer

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_SUMMED = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "seconds")


def upgrade() -> None:
    op.add_column("turns", Column("estimated", Integer, nullable=False, server_default="0"))
    op.drop_index("turns_by_time", "turns")
    columns = ["minute", "model", "conversation_id", "turn", *_SUMMED, "estimated"]
    op.create_index("turns_by_time", "turns", columns)


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
