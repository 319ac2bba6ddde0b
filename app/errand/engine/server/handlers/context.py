"""Handlers of context, summaries and system prompts."""

import asyncio
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from errand.engine.agent.compaction.token_estimate import before_turn, largest_of
from errand.engine.agent.history.visible_history import recent_path
from errand.engine.agent.prompt.environment import environment_for_task
from errand.engine.agent.prompt.system_prompt import current_parts, has_short_rules
from errand.engine.agent.tasks import manual_summary
from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.models.reply.usage import CHARACTERS_A_TOKEN
from errand.engine.models.router import window_of
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.engine.storage.records.agents import ASSISTANT
from errand.engine.storage.records.turns import PartSize, SentTurn
from errand.engine.tools.plain_text import is_text
from errand.protocol.blocks import EnvironmentBlock
from errand.protocol.context import (
    CONTEXT_EXPLAIN,
    CONVERSATION_EDIT_SUMMARY,
    CONVERSATION_SUMMARISE,
    PROMPT_GET,
    ContextExplainParams,
    ContextExplainResult,
    ContextItem,
    ContextShare,
    ConversationSummariseParams,
    PromptGetParams,
    PromptGetResult,
    PromptPart,
    PromptShare,
    SummaryEditParams,
    SummaryEditResult,
)
from errand.protocol.tasks.methods import TaskResult
from errand.protocol.tasks.task import Task

_MAX_LARGEST_ENTRIES = 100


async def explain(services: Services, session: ClientSession, params: ContextExplainParams) -> ContextExplainResult:
    if not 0 <= params.largest <= _MAX_LARGEST_ENTRIES:
        raise InvalidParams(f"largest: a number from 0 to {_MAX_LARGEST_ENTRIES}.")
    task = await services.database.tasks.get(params.task_id)
    if task is None:
        raise NotFound(f"There is no task {params.task_id!r}.")
    sent = await services.database.turns.sent(task.id, params.turn)
    if sent is None and params.turn is not None:
        raise NotFound(f"There is no turn {params.turn} of task {task.id!r}.")
    model = sent.model if sent else task.request.model
    used = _used(sent) if sent else 0
    divided = shares(sent.parts, used) if sent and used else ()
    prompt = await services.database.prompts.of_task(task.id) if divided else ()
    return ContextExplainResult(
        task_id=task.id,
        turn=sent.turn if sent else 0,
        model=model,
        used_tokens=used,
        window_tokens=window_of(
            model, task.request.api_base, models=services.models.router, settings=services.settings
        ),
        shares=divided,
        prompt=prompt_shares(prompt, next((share.tokens for share in divided if share.part == "system"), 0)),
        largest=await _largest(services, task, sent, params.largest) if sent and params.largest else (),
    )


def _used(sent: SentTurn) -> int:
    """Return the provider's count, else an estimate by length: a retried turn was sent more than once."""
    if sent.estimated:
        return sum(part.characters for part in sent.parts) // CHARACTERS_A_TOKEN
    return sent.input_tokens or 0


def shares(parts: tuple[PartSize, ...], used: int) -> tuple[ContextShare, ...]:
    """Return the counted tokens, divided in proportion to characters; the shares add up to the total."""
    tokens = _divided(used, [part.characters for part in parts])
    rate = used / max(1, sum(part.characters for part in parts))
    return tuple(
        ContextShare(
            part=part.part,
            tokens=share,
            items=part.items,
            findable_items=part.findable_items,
            findable_tokens=round(part.findable_characters * rate),
        )
        for part, share in zip(parts, tokens, strict=True)
    )


def prompt_shares(parts: tuple[PromptPart, ...], used: int) -> tuple[PromptShare, ...]:
    """Return the same for the non-empty parts of a system prompt."""
    filled = [part for part in parts if part.text]
    tokens = _divided(used, [len(part.text) for part in filled])
    return tuple(
        PromptShare(part=part.name, tokens=share, sources=part.sources)
        for part, share in zip(filled, tokens, strict=True)
    )


def _divided(total: int, lengths: Sequence[int]) -> list[int]:
    """Divide a whole number in proportion to the lengths; the shares add up to it."""
    upto = [round(total * passed / max(1, sum(lengths))) for passed in accumulate(lengths)]
    return [share - before for before, share in pairwise((0, *upto))]


async def summarise(services: Services, session: ClientSession, params: ConversationSummariseParams) -> TaskResult:
    return TaskResult(task=await services.runner.summarise(params))


async def edit_summary(services: Services, session: ClientSession, params: SummaryEditParams) -> SummaryEditResult:
    return SummaryEditResult(
        node=await manual_summary.edit_summary(params, services.log, services.database, services.locks)
    )


async def _largest(services: Services, task: Task, sent: SentTurn, count: int) -> tuple[ContextItem, ...]:
    agent = await services.database.agents.get(task.agent_id)
    conversation = await services.database.conversations.get(task.conversation_id)
    if agent is None or agent.head_id is None or conversation is None or not sent.parts:
        return ()
    path = await recent_path(services.database.nodes, agent.head_id, conversation.kept)
    characters = sum(part.characters for part in sent.parts)
    return await asyncio.to_thread(
        largest_of,
        before_turn(path, task.id, sent.turn),
        conversation.kept,
        count,
        (sent.input_tokens or 0) / characters,
    )


async def get(services: Services, session: ClientSession, params: PromptGetParams) -> PromptGetResult:
    if params.task_id is not None:
        task = await services.database.tasks.get(params.task_id)
        if task is None:
            raise NotFound(f"There is no task {params.task_id!r}.")
        return PromptGetResult(parts=await _parts_of_task(services, task))
    personality = await services.database.personalities.get(params.personality_id or ASSISTANT.id)
    if personality is None:
        raise NotFound(f"There is no personality {params.personality_id!r}.")
    path = params.workspace or ""
    workspace = await in_workspace(Path(path), lambda: _workspace(path))
    mode = "chat" if params.chat else "auto"
    facts = await services.facts.for_task(workspace)
    parts = await current_parts(personality.system_prompt, workspace, mode, services.paths, facts)
    environment = await environment_for_task(workspace, None)
    return PromptGetResult(parts=(*parts, *_environment_part(environment, is_brief=False)))


async def _parts_of_task(services: Services, task: Task) -> tuple[PromptPart, ...]:
    """Return the stored parts, and what the message that started the task says of the workspace."""
    parts = await services.database.prompts.of_task(task.id)
    outline = await services.database.trees.outline(task.conversation_id)
    opening = next((node.id for node in outline.nodes if node.task_id == task.id and node.role == "user"), None)
    message = await services.database.nodes.get(opening) if opening is not None else None
    blocks = message.blocks if message is not None else ()
    environment = next((block for block in blocks if isinstance(block, EnvironmentBlock)), None)
    return (*parts, *_environment_part(environment, is_brief=has_short_rules(parts)))


def _environment_part(environment: EnvironmentBlock | None, *, is_brief: bool) -> tuple[PromptPart, ...]:
    """Return what the agent reads of the workspace, in brief if it is a small model."""
    if environment is None:
        return ()
    return (PromptPart(name="workspace", text=environment.brief if is_brief else environment.text),)


def _workspace(path: str) -> Path:
    folder = Path(path)
    if not folder.is_absolute() or not folder.is_dir():
        raise InvalidParams(f"workspace: {path!r} is no folder. Name the one to work in by its absolute path.")
    real = folder.resolve()
    if not is_text(str(real)):
        raise InvalidParams(f"workspace: {path!r} leads to a folder whose name is not UTF-8. Rename that folder.")
    return real


HANDLERS = (
    Route(CONTEXT_EXPLAIN, explain),
    Route(CONVERSATION_SUMMARISE, summarise),
    Route(CONVERSATION_EDIT_SUMMARY, edit_summary),
    Route(PROMPT_GET, get),
)
