"""Adds colours to the built-in personalities, which would count as changed without them."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_COLOURS = {"assistant": "blue", "coder": "teal", "researcher": "violet", "writer": "orange"}
_PAINT = """
UPDATE personalities SET body = json_set(body, '$.color', ?)
WHERE id = ? AND coalesce(json_extract(body, '$.color'), '') = ''
"""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for personality_id, colour in _COLOURS.items():
            connection.exec_driver_sql(_PAINT, (colour, personality_id))


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
