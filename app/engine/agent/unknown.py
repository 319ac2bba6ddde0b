"""A call that was under way when the engine was killed, as it is put to a person."""

from datetime import UTC, datetime

from app.engine.ids import new_id
from app.engine.storage.executions import Started
from app.engine.tools.base import Access
from app.protocol.asks import RUN_AGAIN, SKIP, STOP, Ask, UnknownCall
from app.protocol.tasks import Task

_TEXT = (
    "The engine was killed while this was under way. It may have taken effect in part, in whole, or not at all: "
    "look first, then choose."
)


def has_effects(access: Access) -> bool:
    """A call that only reads does no harm a second time."""
    return access.tier in ("write", "run")


def ask_about(started: Started, access: Access, task: Task) -> Ask:
    """Asks the same about the same call, whichever engine raises it.

    `access` is of the call as it would run again, and it alone is shown: the record says only that it was begun.
    """
    return Ask(
        id=new_id("ask"),
        task_id=task.id,
        conversation_id=task.conversation_id,
        owner=task.owner,
        kind="unknown",
        text=_TEXT,
        created_at=datetime.now(UTC),
        choices=(RUN_AGAIN, SKIP, STOP),
        call_id=started.call_id,
        unknown=UnknownCall(
            execution_id=started.execution_id,
            call_id=started.call_id,
            tool=started.tool,
            text=access.text,
            started_at=started.at,
            command=access.command,
        ),
    )
