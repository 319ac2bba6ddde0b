"""Builds a task's record from storage, with the input of each model call."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from errand.engine.agent.history.participants import participants_of
from errand.engine.agent.history.visible_history import visible_messages
from errand.engine.agent.tasks.task_target import personality_of
from errand.engine.core.errors import NotFound
from errand.engine.core.messages import AssistantMessage, Image, Text, ToolCall, ToolResultMessage, UserMessage
from errand.engine.core.messages import ModelMessage as Message
from errand.engine.record.format import VERSION, RecordTaskLine, RequestLine, TaskRecord
from errand.engine.storage.database import Database
from errand.engine.storage.records.agents import ASSISTANT
from errand.protocol.agents import Agent, Personality
from errand.protocol.asks import Ask
from errand.protocol.blocks import Block, ImageBlock, TextBlock, ToolResultBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.task import Task

_MAX_ASKS = 10_000


def requests_of(history: Sequence[Node], nodes: Sequence[Node], kept: Collection[str]) -> tuple[RequestLine, ...]:
    """One request per reply of a task, rebuilt from the nodes before it: requests are not stored."""
    sent: list[list[str]] = []
    for index, node in enumerate(nodes):
        if node.role == "assistant":
            sent.append(
                [message_text(message) for message in visible_messages((*history, *nodes[:index]), kept, tuple)]
            )
    return request_lines(sent)


def request_lines(sent: Sequence[Sequence[str]]) -> tuple[RequestLine, ...]:
    """Return each request as its difference from the previous one."""
    lines: list[RequestLine] = []
    before: Sequence[str] = ()
    for messages in sent:
        kept_count = next((i for i, (old, new) in enumerate(zip(before, messages, strict=False)) if old != new), None)
        kept_count = min(len(before), len(messages)) if kept_count is None else kept_count
        lines.append(RequestLine(kept_count=kept_count, added=tuple(messages[kept_count:])))
        before = messages
    return tuple(lines)


def message_text(message: Message) -> str:
    """Return a message with its role; pictures by name only."""
    match message:
        case UserMessage(content=content):
            return "user: " + " ".join(_content(block) for block in content)
        case AssistantMessage(content=content):
            return "assistant: " + " ".join(_content(block) for block in content)
        case ToolResultMessage(tool_call_id=call_id, tool_name=tool, content=content, is_error=is_error):
            word = "error" if is_error else "result"
            return f"{word} of {tool} {call_id}: " + " ".join(_content(block) for block in content)


def _content(block: object) -> str:
    match block:
        case Text(text=text):
            return text
        case Image(media_type=kind):
            return f"[picture {kind}]"
        case ToolCall(id=call_id, name=name, arguments=arguments, invalid=invalid):
            arguments_text = invalid if invalid is not None else msgspec.json.encode(arguments, order="sorted").decode()
            return f"[calls {name} {call_id}: {arguments_text}]"
        case _:
            return "[thinks]"


@dataclass(frozen=True, slots=True)
class RecordContext:
    """The environment of a task: the version, the settings that affect it, the context window of its model."""

    errand_version: str
    max_minutes: float
    max_tokens: int
    summarise_at: float
    window_of: Callable[[str, str | None], int | None]


async def make_record(database: Database, task_id: str, context: RecordContext) -> TaskRecord:
    """Return the record of an ended task, or of its progress so far. Raises `NotFound`."""
    task = await database.tasks.get(task_id)
    if task is None:
        raise NotFound(f"There is no task {task_id!r}.")
    nodes = await _nodes(database, task)
    history = await _history(database, task, nodes[0].parent_id if nodes else None)
    history, nodes = tuple(map(_without_pictures, history)), tuple(map(_without_pictures, nodes))
    conversation = await database.conversations.get(task.conversation_id)
    head = RecordTaskLine(
        record_version=VERSION,
        errand_version=context.errand_version,
        recorded_at=datetime.now(UTC),
        task=task,
        personality=await _personality(database, task),
        max_minutes=task.budget.max_minutes or context.max_minutes,
        max_tokens=task.budget.max_tokens or context.max_tokens,
        prompt=await database.prompts.of_task(task_id),
        window=context.window_of(task.request.model, task.request.api_base),
        summarise_at=context.summarise_at,
        counted=await database.turns.newest_counted(task.conversation_id, task.request.model, task.started_at),
        kept_ids=conversation.kept if conversation is not None else (),
    )
    requests = await asyncio.to_thread(requests_of, history, nodes, head.kept_ids)  # a task of 500 turns takes seconds
    return TaskRecord(head, history, requests, nodes, await _asks(database, task_id))


async def _nodes(database: Database, task: Task) -> tuple[Node, ...]:
    """Return all nodes of the task, in order of creation."""
    nodes: list[Node] = []
    async for kind, body in database.transfer.records(task.conversation_id):
        if kind == "node" and task.id in body:
            node = msgspec.json.decode(body, type=Node)
            if node.task_id == task.id:
                nodes.append(node)
    return tuple(nodes)


async def _history(database: Database, task: Task, leaf_id: str | None) -> tuple[Node, ...]:
    """Return the branch before a task as its agent read it: messages of other agents appear under their names."""
    path: tuple[Node, ...] = await database.nodes.path(leaf_id) if leaf_id is not None else ()
    agent = await database.agents.get(task.agent_id) or _deleted_agent(task)
    return (await participants_of(agent, database)).as_messages(path)


def _deleted_agent(task: Task) -> Agent:
    """Return a placeholder for a deleted agent, with the fields that affect its view of the branch."""
    return Agent(
        id=task.agent_id,
        conversation_id=task.conversation_id,
        personality_id=ASSISTANT.id,
        name=ASSISTANT.name,
        head_id=None,
        version=0,
        created_at=task.started_at,
    )


async def _asks(database: Database, task_id: str) -> tuple[Ask, ...]:
    return tuple(reversed(await database.asks.page(_MAX_ASKS, (task_id,))))


async def _personality(database: Database, task: Task) -> Personality:
    agent = await database.agents.get(task.agent_id)
    return ASSISTANT if agent is None else await personality_of(None, agent, database)


def _without_pictures(node: Node) -> Node:
    """Replaces pictures by their names: they are separate files, and private."""
    return msgspec.structs.replace(node, blocks=tuple(map(_without_picture, node.blocks)))


def _without_picture(block: Block) -> Block:
    if isinstance(block, ImageBlock):
        return TextBlock(text=f"[A picture was here: {block.name or block.media_type}]")
    if isinstance(block, ToolResultBlock) and block.images:
        named = "".join(f"\n[A picture was here: {image.name or image.media_type}]" for image in block.images)
        return msgspec.structs.replace(block, text=block.text + named, images=())
    return block
