"""Takes a conversation away for good, with all that belongs to it."""

from sqlalchemy import Text, bindparam, select

from app.engine.storage.tables import agents, asks, conversations, events, nodes, tasks, tool_executions, turns
from app.engine.storage.write import Write

_ID = bindparam("of_conversation", type_=Text())
_TASKS = select(tasks.c.id).where(tasks.c.conversation_id == _ID)

# Rows before those that they point at.
_DELETES = (
    tool_executions.delete().where(tool_executions.c.task_id.in_(_TASKS)),
    turns.delete().where(turns.c.task_id.in_(_TASKS)),
    asks.delete().where(asks.c.task_id.in_(_TASKS)),
    tasks.delete().where(tasks.c.conversation_id == _ID),
    agents.delete().where(agents.c.conversation_id == _ID),
    nodes.delete().where(nodes.c.conversation_id == _ID),
    events.delete().where(events.c.conversation_id == _ID),
    conversations.delete().where(conversations.c.id == _ID),
)


def writes(conversation_id: str) -> tuple[Write, ...]:
    """To be put in one group."""
    return tuple(Write(statement, {"of_conversation": conversation_id}) for statement in _DELETES)
