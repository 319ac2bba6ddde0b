"""Adds an index of conversations with deleted agents, to search these agents by name."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_FORMER = """
CREATE INDEX conversations_with_former ON conversations (id) WHERE instr(body, '"former":[{') > 0
"""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_FORMER.strip())


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
