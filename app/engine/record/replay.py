"""Plays a record with the loop of today, in a home of its own: no network, no process, no file of the person's."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import msgspec

from app.engine.agent.asks import AskDesk
from app.engine.agent.assembly import Assembly
from app.engine.agent.attachments import Attachments
from app.engine.agent.branch import Branch
from app.engine.agent.context import user_message
from app.engine.agent.control import CONTROL_TOOLS
from app.engine.agent.day import Day
from app.engine.agent.prompting import text as prompt_text
from app.engine.agent.reach import read
from app.engine.agent.summarising import PROMPT
from app.engine.broadcast import EventLog
from app.engine.messages import UserMessage
from app.engine.permissions.grants import Grants
from app.engine.record.lines import TaskRecord
from app.engine.record.make import Ground, make_record
from app.engine.record.person import RecordedPerson
from app.engine.record.requests import differences
from app.engine.record.stage import Stage, begins_with_a_message
from app.engine.record.stand_ins import RecordedModel, RecordedTool
from app.engine.settings import Settings
from app.engine.storage import prompts, turns
from app.engine.storage.database import Database
from app.engine.storage.engines import sqlite_url
from app.engine.storage.turns import PartSize
from app.engine.tools.base import GuardedTool
from app.paths import Paths
from app.protocol.agents import Agent, Personality
from app.protocol.blocks import NoticeBlock, TextBlock
from app.protocol.conversations import Conversation, Node
from app.protocol.events import AgentUpdate, ConversationUpdate, TaskMessage, TaskUpdate
from app.protocol.prompts import PromptPart
from app.protocol.tasks import Task
from app.protocol.usage import Usage

# A record holds no waiting: whoever waits longer has lost the thread.
_LONGEST_S = 60.0


async def replay(record: TaskRecord, home: Path) -> TaskRecord:
    """The record that the same task leaves today. TimeoutError where it does not come to an end."""
    paths = Paths(home)
    paths.prepare()
    stage = Stage(record)
    model = RecordedModel(stage)
    async with AsyncExitStack() as stack:
        database = await Database.open(sqlite_url(paths.database), paths.copies)
        stack.push_async_callback(database.close)
        log = EventLog(database.journal, database.epoch, 0)
        stack.callback(log.close)
        settings = Settings(paths.settings)
        head = record.head
        settings.set("max_minutes", 0)  # time does not pass here
        settings.set("max_tokens", head.max_tokens)
        settings.set("summarise_at", head.summarise_at)
        desk = AskDesk(log, database.asks)
        has_price = any(node.usage is not None and node.usage.cost_usd is not None for node in record.nodes)
        assembly = Assembly(
            log,
            database,
            settings,
            desk,
            Grants(),
            paths,
            Attachments(paths.attachments),
            Day(log, database.usage, settings),
            lambda _: has_price,
            lambda _: head.window,
            lambda tools: _recorded(tools, stage),
        )
        person = RecordedPerson(record, stage, desk)
        stack.callback(log.attach(person))
        answering = asyncio.create_task(person.answer_all(), name="answer as recorded")
        stack.callback(answering.cancel)
        async with asyncio.timeout(_LONGEST_S):
            await _play(record, assembly, stage, model)
        ground = Ground(
            head.errand_version, head.max_minutes, head.max_tokens, head.summarise_at, lambda _: head.window
        )
        made = await make_record(database, head.task.id, ground)
    return replace(made, requests=differences(model.sent))


def _recorded(tools: tuple[GuardedTool, ...], stage: Stage) -> tuple[GuardedTool, ...]:
    return tuple(RecordedTool(tool, stage, is_real=tool.name in CONTROL_TOOLS) for tool in tools)


async def _play(record: TaskRecord, assembly: Assembly, stage: Stage, model: RecordedModel) -> None:
    task = _begun(record)
    branch = await _open(record, task, assembly)
    message = None
    if begins_with_a_message(record):
        message = user_message(record.nodes[0].blocks)
        for node in _before_the_first_reply(record.nodes):
            branch.append(branch.draft(node.role, node.author, node.blocks, task_id=task.id))
    await branch.save()
    history = read(record.history, record.head.kept, tuple)
    personality = record.head.personality
    assembly.database.journal.put(prompts.add(task.id, record.head.prompt or _bare(personality)))
    _count(record, task, assembly)
    stage.run = assembly.build(task, branch, personality, model, history, 1 if message is not None else 0, tuple)
    await stage.run.run(message if isinstance(message, UserMessage) else None)


async def _open(record: TaskRecord, task: Task, assembly: Assembly) -> Branch:
    """Put what was there before the task: its conversation, its agent, and the branch it went on from."""
    conversation = Conversation(
        id=task.conversation_id,
        title="A replay",
        created_at=task.started_at,
        updated_at=task.started_at,
        workspace=task.workspace,
        kept=record.head.kept,
    )
    agent = Agent(
        id=task.agent_id,
        conversation_id=task.conversation_id,
        personality_id=record.head.personality.id,
        name=record.head.personality.name,
        head_id=record.history[-1].id if record.history else None,
        version=0,
        created_at=task.started_at,
    )
    assembly.log.publish(ConversationUpdate(conversation=conversation))
    assembly.log.publish(AgentUpdate(agent=agent))
    assembly.log.publish(TaskUpdate(task=task))
    for node in record.history:
        assembly.log.publish(TaskMessage(node=node))
    await assembly.log.flush()
    return Branch(agent, assembly.log)


def _bare(personality: Personality) -> tuple[PromptPart, ...]:
    """For records that were made before they told the prompt: no file of the person's is read in its place."""
    return (PromptPart(name="role", text=personality.system_prompt),)


def _count(record: TaskRecord, task: Task, assembly: Assembly) -> None:
    """Put how long the request before the task was, which tells how many tokens a text has."""
    characters, tokens = record.head.counted
    part = PartSize("history", characters, 1)
    usage = Usage(input_tokens=tokens)
    journal = assembly.database.journal
    journal.put(turns.started(task.conversation_id, task.id, 0, task.model, task.started_at, (part,)))
    journal.put(turns.finished(task.id, 0, "complete", usage, task.started_at))


def _before_the_first_reply(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The message and what was remarked about the task when it began; what a call remarked is remarked again."""
    first = next((index for index, node in enumerate(nodes) if node.role == "assistant"), 1)
    return tuple(node for node in nodes[:first] if node.role == "user" or _is_info(node))


def _is_info(node: Node) -> bool:
    return any(isinstance(block, NoticeBlock) and block.kind == "info" for block in node.blocks)


def _begun(record: TaskRecord) -> Task:
    """The task as it was when it began; one that a person made a chat began as what its first reply made of it."""
    task = record.head.task
    as_chat = prompt_text("as_chat")
    turned = any(isinstance(block, TextBlock) and block.text == as_chat for n in record.nodes for block in n.blocks)
    return msgspec.structs.replace(
        task,
        mode="auto" if turned else task.mode,
        status="running",
        stop_reason=None,
        stopping=False,
        step_count=0,
        current_tool=None,
        activity="",
        ask_id=None,
        queue=(),
        summary="",
        error=None,
        usage=Usage(),
        worked_s=0.0,
        allowance=None,
        near=(),
        retry_at=None,
        limited_at=None,
        answer=None,
        summarises=task.prompt == PROMPT and not begins_with_a_message(record),
        resumes=False,
        decided=None,
        ended_at=None,
    )
