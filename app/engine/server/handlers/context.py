"""What a turn sent, and summaries of what no longer fits."""

import asyncio

import msgspec

from app.engine.agent.largest import before_turn, largest_of
from app.engine.agent.summarising import edit
from app.engine.errors import InvalidParams, NotFound
from app.engine.models.windows import window_of
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.engine.storage.turns import PartSize, SentTurn
from app.protocol.context import (
    ContextExplainParams,
    ContextExplainResult,
    ContextItem,
    ContextShare,
    ConversationSummariseParams,
    SummaryEditParams,
    SummaryEditResult,
)
from app.protocol.tasks import Task, TaskResult
from app.protocol.wire import CONTEXT_EXPLAIN, CONVERSATION_EDIT_SUMMARY, CONVERSATION_SUMMARISE

_MOST_LARGEST = 100


async def explain(services: Services, session: Session, params: ContextExplainParams) -> ContextExplainResult:
    if not 0 <= params.largest <= _MOST_LARGEST:
        raise InvalidParams(f"largest: a number from 0 to {_MOST_LARGEST}.")
    task = await services.database.tasks.get(params.task_id)
    if task is None:
        raise NotFound(f"There is no task {params.task_id!r}.")
    sent = await services.database.turns.sent(task.id, params.turn)
    if sent is None and params.turn is not None:
        raise NotFound(f"There is no turn {params.turn} of task {task.id!r}.")
    model = sent.model if sent else task.model
    used = (sent.input_tokens if sent else None) or 0
    return ContextExplainResult(
        task_id=task.id,
        turn=sent.turn if sent else 0,
        model=model,
        used_tokens=used,
        window_tokens=window_of(model, services.models, services.settings),
        shares=shares(sent.parts, used) if sent and used else (),
        largest=await _largest(services, task, sent, params.largest) if sent and params.largest else (),
    )


def shares(parts: tuple[PartSize, ...], used: int) -> tuple[ContextShare, ...]:
    """The counted tokens divided as the characters are; together they are the whole."""
    whole = sum(part.characters for part in parts)
    divided: list[ContextShare] = []
    passed = given = 0
    for part in parts:
        passed += part.characters
        upto = round(used * passed / whole)
        divided.append(ContextShare(part=part.part, tokens=upto - given, items=part.items))
        given = upto
    return tuple(divided)


async def summarise(services: Services, session: Session, params: ConversationSummariseParams) -> TaskResult:
    return TaskResult(task=await services.runner.summarise(params))


async def edit_summary(services: Services, session: Session, params: SummaryEditParams) -> SummaryEditResult:
    return SummaryEditResult(node=await edit(params, services.log, services.database, services.claims))


async def _largest(services: Services, task: Task, sent: SentTurn, count: int) -> tuple[ContextItem, ...]:
    agent = await services.database.agents.get(task.agent_id)
    conversation = await services.database.conversations.get(task.conversation_id)
    if agent is None or agent.head_id is None or conversation is None or not sent.parts:
        return ()
    path = await services.database.nodes.path(agent.head_id)
    whole = sum(part.characters for part in sent.parts)
    return await asyncio.to_thread(
        largest_of, before_turn(path, task.id, sent.turn), conversation.kept, count, (sent.input_tokens or 0) / whole
    )


def _named(params: ConversationSummariseParams, name: str) -> ConversationSummariseParams:
    return params if params.task_id is not None else msgspec.structs.replace(params, task_id=f"task_{name}")


HANDLERS = (
    Route(CONTEXT_EXPLAIN, explain),
    Route(CONVERSATION_SUMMARISE, summarise, _named),
    Route(CONVERSATION_EDIT_SUMMARY, edit_summary),
)
