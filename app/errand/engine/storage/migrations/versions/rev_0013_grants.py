"""Revokes grants that were matched as text and allowed more than was shown; grants now describe calls in fields."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_REVOKE = """
INSERT INTO grants (grant_id, action, body)
SELECT grant_id, 'revoked', json_set(body, '$.revokedAt', strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) FROM grants
WHERE number IN (SELECT max(number) FROM grants GROUP BY grant_id)
AND action <> 'revoked' AND json_extract(body, '$.call') IS NULL
"""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_REVOKE.strip())


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
