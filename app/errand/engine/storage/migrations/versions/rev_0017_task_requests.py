"""The request of a task has a row of its own, which is not rewritten with every change of the task."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Text, text

from errand.engine.storage.migrations.versions.rev_0016_task_groups import stored_objects
from errand.engine.storage.sql.statements import to_json

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# Compared byte by byte everywhere, like the other ids.
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")

_ADD = text("INSERT INTO task_requests (task_id, body) VALUES (:key, :body)")
_SAVE = text("UPDATE tasks SET body = :body WHERE id = :key")


def upgrade() -> None:
    op.create_table(
        "task_requests",
        Column("task_id", _TEXT, ForeignKey("tasks.id"), primary_key=True),
        Column("body", _TEXT, nullable=False),
    )
    connection = op.get_bind()
    for key, task in stored_objects(connection, "tasks", "id", "id > :last", ""):
        request = task.pop("request", None)
        if isinstance(request, dict):
            connection.execute(_ADD, {"key": key, "body": to_json(request)})
            connection.execute(_SAVE, {"key": key, "body": to_json(task)})


def downgrade() -> None:
    raise NotImplementedError("Errand goes forward only: the copy taken before a migration is the way back.")
