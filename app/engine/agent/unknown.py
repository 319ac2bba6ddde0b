"""A call that was under way when the engine was killed, as it is put to a person."""

from datetime import UTC, datetime

from app.engine.ids import new_id
from app.engine.storage.executions import Started
from app.protocol.asks import RUN_AGAIN, SKIP, STOP, Ask, UnknownCall
from app.protocol.tasks import Task

_TEXT = (
    "The engine was killed while this was under way. It may have taken effect in part, in whole, or not at all: "
    "look first, then choose."
)


def ask_about(started: Started, task: Task) -> Ask:
    """Asks the same about the same call, whichever engine raises it."""
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
            text=started.text or f"Call `{started.tool}`",
            started_at=started.at,
            command=started.command,
        ),
    )
