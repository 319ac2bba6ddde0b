"""The database changes of an event: its own row and the record it carries."""

from typing import assert_never

from errand.engine.storage.records import (
    agents,
    asks,
    changes,
    conversations,
    events,
    facts,
    grants,
    nodes,
    removal,
    tasks,
    turns,
)
from errand.engine.storage.sql.statements import Write
from errand.protocol.events import (
    AgentDeleted,
    AgentUpdate,
    AskUpdate,
    BackgroundUpdate,
    ChangeUpdate,
    ConversationDeleted,
    ConversationUpdate,
    EmbeddingModelUpdate,
    EventRecord,
    FactRemoved,
    FactUpdate,
    GrantUpdate,
    LocalModelUpdate,
    LogRecord,
    McpUpdate,
    PersonalityDeleted,
    PersonalityUpdate,
    TaskMessage,
    TaskPlan,
    TaskUpdate,
)
from errand.protocol.tasks.change import TaskChange


def event_writes(record: EventRecord, logged: LogRecord | None = None) -> tuple[Write, ...]:
    """Put these as one group, so that the event log and the records never differ.

    `logged` is what the log keeps of the event, if it is not all of it.
    """
    row = events.save(record if logged is None else logged)
    if isinstance(record.event, ConversationDeleted):
        return (*removal.writes(record.event.conversation_id), row)
    if isinstance(record.event, McpUpdate | LocalModelUpdate | EmbeddingModelUpdate):
        return (row,)
    if isinstance(record.event, BackgroundUpdate):
        return (row,)  # what runs ends with the engine
    if isinstance(record.event, TaskUpdate) and _has_request(record if logged is None else logged):
        return (row, *tasks.add(record.event.task))
    return (row, _change(record.event))


def _has_request(logged: LogRecord | EventRecord) -> bool:
    return not isinstance(logged.event, TaskChange) or logged.event.request is not None


def _change(
    event: (
        ConversationUpdate
        | AgentUpdate
        | AgentDeleted
        | TaskUpdate
        | TaskMessage
        | TaskPlan
        | AskUpdate
        | ChangeUpdate
        | GrantUpdate
        | FactUpdate
        | FactRemoved
        | PersonalityUpdate
        | PersonalityDeleted
    ),
) -> Write:
    match event:
        case ConversationUpdate(conversation=conversation):
            return conversations.save(conversation)
        case AgentUpdate() | AgentDeleted():
            return _agent_change(event)
        case TaskUpdate(task=task):
            return tasks.save(task)
        case TaskMessage(node=node):
            return nodes.save(node)
        case TaskPlan(plan=plan):
            return turns.save_plan(plan)
        case AskUpdate(ask=ask):
            return asks.save(ask)
        case ChangeUpdate(change=change):
            return changes.save(change)
        case GrantUpdate(grant=grant):
            return grants.save(grant)
        case FactUpdate() | FactRemoved():
            return _fact_change(event)
        case PersonalityUpdate() | PersonalityDeleted():
            return _personality_change(event)
        case _:
            assert_never(event)


def _agent_change(event: AgentUpdate | AgentDeleted) -> Write:
    match event:
        case AgentUpdate(agent=agent):
            return agents.save_agent(agent)
        case AgentDeleted(agent_id=agent_id):
            return agents.delete_agent(agent_id)


def _fact_change(event: FactUpdate | FactRemoved) -> Write:
    match event:
        case FactUpdate(fact=fact):
            return facts.save(fact)
        case FactRemoved(fact_id=fact_id):
            return facts.delete(fact_id)


def _personality_change(event: PersonalityUpdate | PersonalityDeleted) -> Write:
    match event:
        case PersonalityUpdate(personality=personality):
            return agents.save_personality(personality)
        case PersonalityDeleted(personality_id=personality_id):
            return agents.delete_personality(personality_id)
