"""`errand replay`: replays a record in a temporary home and reports differences."""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import msgspec

from errand.engine.agent.history.attachments import Attachments
from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.history.conversion import user_message
from errand.engine.agent.history.visible_history import visible_messages
from errand.engine.agent.run.limits import DailyBudget
from errand.engine.agent.run.pending_asks import PendingAsks
from errand.engine.agent.run.task_builder import MemoryDependencies, ModelDependencies, TaskBuilder, ToolDependencies
from errand.engine.checkpoints.baselines import Baselines
from errand.engine.checkpoints.contents import ContentStore
from errand.engine.core.errors import EngineError, InvalidParams
from errand.engine.core.settings import Settings
from errand.engine.event_log import EventLog
from errand.engine.memory.facts import Facts
from errand.engine.permissions.grants import Grants
from errand.engine.record.diff import compare, replies
from errand.engine.record.format import TaskRecord, read
from errand.engine.record.make_record import RecordContext, make_record, request_lines
from errand.engine.record.replay_fakes import (
    RecordedMemory,
    RecordedModel,
    RecordedPerson,
    RecordedTool,
    ServerTool,
)
from errand.engine.record.replay_script import ReplayScript, begins_with_a_message
from errand.engine.storage.database import Database
from errand.engine.storage.records import tasks, turns
from errand.engine.storage.records.turns import PartSize
from errand.engine.storage.sqlite.engines import sqlite_url
from errand.engine.tools.base import GuardedTool
from errand.engine.tools.mcp.definitions import SEPARATOR
from errand.engine.tools.registry import CONTROL_TOOLS, SERVICES
from errand.engine.tools.sessions import ToolSessions
from errand.protocol.agents import Agent, Personality
from errand.protocol.blocks import NoticeBlock
from errand.protocol.context import PromptPart
from errand.protocol.conversations import Conversation, Node
from errand.protocol.events import AgentUpdate, ConversationUpdate, TaskMessage, TaskUpdate
from errand.protocol.tasks.task import Task, replace_fields
from errand.protocol.usage import Usage
from errand.system.paths import Paths
from errand.system.regular_file import read_regular
from errand.text.printable import printable
from errand.text.redaction import Redactor

# A replay has no waiting times: exceeding this means it is stuck.
_REPLAY_TIMEOUT_S = 60.0

_MAX_RECORD_BYTES = 256_000_000


async def replay(record: TaskRecord, home: Path) -> TaskRecord:
    """Return the record that the same task produces today. Raises TimeoutError if it does not end."""
    paths = Paths(home)
    paths.prepare()
    stage = ReplayScript(record)
    model = RecordedModel(stage)
    async with AsyncExitStack() as stack:
        database = await Database.open(sqlite_url(paths.database), paths.copies)
        stack.push_async_callback(database.close)
        log = EventLog(database.journal, database.epoch, 0)
        stack.callback(log.deltas.close)
        settings = Settings(paths.settings)
        head = record.head
        settings.set("max_minutes", 0)  # no time elapses in a replay
        settings.set("max_tokens", head.max_tokens)
        settings.set("summarise_at", head.summarise_at)
        asks = PendingAsks(log, database.asks)
        has_price = any(node.usage is not None and node.usage.cost_usd is not None for node in record.nodes)
        contents = ContentStore(paths.replaced)
        stack.callback(contents.close)
        baselines = Baselines(contents, paths.replaced / "git", paths.home)
        stack.push_async_callback(baselines.close)
        sessions = ToolSessions()
        stack.push_async_callback(sessions.close)
        builder = TaskBuilder(
            log=log,
            database=database,
            settings=settings,
            paths=paths,
            asks=asks,
            grants=Grants(),
            attachments=Attachments(paths.attachments),
            models=ModelDependencies(
                has_price=lambda _: has_price,
                window_of=lambda _, address: head.window,
                daily_budget=DailyBudget(log, database.usage, settings),
            ),
            tools=ToolDependencies(
                sessions=sessions,
                baselines=baselines,
                redactor=Redactor(),
                replace=lambda tools: _recorded_tools(tools, stage),
                writes_offered_names=False,
            ),
            memory=MemoryDependencies(facts=Facts(log, database, Redactor()), source=RecordedMemory(stage)),
        )
        person = RecordedPerson(record, stage, asks)
        stack.callback(log.attach(person))
        answering = asyncio.create_task(person.answer_all(), name="answer as recorded")
        stack.callback(answering.cancel)
        async with asyncio.timeout(_REPLAY_TIMEOUT_S):
            await _play(record, builder, stage, model)
        ground = RecordContext(
            head.errand_version, head.max_minutes, head.max_tokens, head.summarise_at, lambda _, address: head.window
        )
        replayed = await make_record(database, head.task.id, ground)
    return replace(replayed, requests=request_lines(model.sent))


def _recorded_tools(tools: tuple[GuardedTool, ...], script: ReplayScript) -> tuple[GuardedTool, ...]:
    own = {tool.name for tool in tools}
    called = {call.tool for turn in script.turns for call in turn.calls}
    of_servers = [ServerTool(name) for name in sorted(called - own) if name == SERVICES or SEPARATOR in name]
    return tuple(RecordedTool(tool, script, is_real=isinstance(tool, CONTROL_TOOLS)) for tool in (*tools, *of_servers))


async def _play(record: TaskRecord, builder: TaskBuilder, script: ReplayScript, model: RecordedModel) -> None:
    task = _initial_task(record)
    branch = await _restore_branch(record, task, builder)
    message = None
    if begins_with_a_message(record):
        message = user_message(record.nodes[0].blocks)
        for node in _before_the_first_reply(record.nodes):
            branch.append(branch.draft(node.role, node.author, node.blocks, task_id=task.id))
    await branch.save()
    history = visible_messages(record.history, record.head.kept_ids, tuple)
    personality = record.head.personality
    builder.database.journal.put(tasks.save_prompt(task.id, record.head.prompt or _role_prompt(personality)))
    _restore_request_size(record, task, builder)
    script.run = builder.build(task, branch, personality, model, history, 1 if message is not None else 0, tuple)
    await script.run.run(message)


async def _restore_branch(record: TaskRecord, task: Task, builder: TaskBuilder) -> BranchWriter:
    """Restore the state before the task: its conversation, its agent, and its branch."""
    conversation = Conversation(
        id=task.conversation_id,
        title="A replay",
        created_at=task.started_at,
        updated_at=task.started_at,
        workspace=task.request.workspace,
        kept=record.head.kept_ids,
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
    builder.log.publish(ConversationUpdate(conversation=conversation))
    builder.log.publish(AgentUpdate(agent=agent))
    builder.log.publish(TaskUpdate(task=task))
    for node in record.history:
        builder.log.publish(TaskMessage(node=node))
    await builder.log.flush()
    return BranchWriter(agent, builder.log)


def _role_prompt(personality: Personality) -> tuple[PromptPart, ...]:
    """Return the prompt of a record that has none, because it is older: the person's files are not read instead."""
    return (PromptPart(name="role", text=personality.system_prompt),)


def _restore_request_size(record: TaskRecord, task: Task, builder: TaskBuilder) -> None:
    """Restore the size of the request before the task, the basis of token estimates."""
    characters, tokens = record.head.counted
    part = PartSize("history", characters, 1)
    usage = Usage(input_tokens=tokens)
    journal = builder.database.journal
    journal.put(turns.started(task.conversation_id, task.id, 0, task.request.model, task.started_at, (part,)))
    journal.put(turns.finished(task.id, 0, "complete", usage, task.started_at))


def _before_the_first_reply(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the message and the notices at the start of the task; notices of a call appear again in the replay."""
    first = next((index for index, node in enumerate(nodes) if node.role == "assistant"), 1)
    return tuple(node for node in nodes[:first] if node.role == "user" or _is_info(node))


def _is_info(node: Node) -> bool:
    return any(isinstance(block, NoticeBlock) and block.kind == "info" for block in node.blocks)


def _initial_task(record: TaskRecord) -> Task:
    """Return the task in its initial state; one that a person turned into a chat started in the mode of its first
    reply.

    The approval mode may have changed: what was asked then is asked again, what ran or was denied is played as such.
    """
    task = record.head.task
    asked = any(ask.approval is not None for ask in record.asks)
    turned = any(user_message(node.blocks).kind == "as_chat" for node in record.nodes if node.role == "user")
    return replace_fields(
        task,
        mode="auto" if turned else task.options.mode,
        approve="ask" if asked else task.options.approve,
        attended=asked or task.options.attended,
        status="running",
        stop_reason=None,
        stopping=False,
        pausing=False,
        step_count=0,
        messages=0,
        tool_runs=0,
        last_call_failed=False,
        untouched=(),
        changed_nothing=False,
        current_tool=None,
        calls=(),
        detail="",
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
        summarised=False,
        resumes=False,
        decided=None,
        todo=(),
        delegated=Usage(),
        delegated_turns=0,
        ended_at=None,
    )


class ReplayFailed(Exception):
    """A record that cannot be replayed; the text is for a person, and the process ends with `exit_code`."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def replay_file(file: Path, *, as_json: bool) -> int:
    """Replay a record and print the differences; returns 1 if there are any. Raises `ReplayFailed`."""
    try:
        record = read(_text(file).splitlines())
        with tempfile.TemporaryDirectory(prefix="errand-replay-") as home:
            today = asyncio.run(replay(record, Path(home)))
    except TimeoutError as error:
        text = "the replay did not come to an end: the loop waits today where it did not then."
        raise ReplayFailed(text, 1) from error
    except EngineError as error:
        raise ReplayFailed(str(error), 2) from error
    return _report(record, today, as_json=as_json)


def _text(file: Path) -> str:
    try:
        return read_regular(file, _MAX_RECORD_BYTES).decode()
    except OSError as error:
        raise InvalidParams(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidParams(f"{file} cannot be read: it is no UTF-8 text.") from error


def _report(record: TaskRecord, today: TaskRecord, *, as_json: bool) -> int:
    differences, count = compare(record, today), len(replies(record))
    if as_json:
        result = msgspec.json.encode({"turns": count, "differences": differences})
        sys.stdout.write(f"{printable(result.decode())}\n")
    elif differences:
        sys.stdout.writelines(f"{printable(line)}\n" for line in differences)
    else:
        turns = "1 turn:" if count == 1 else f"{count} turns:"
        sys.stdout.write(f"{turns} the loop does today what it did then.\n")
    return 1 if differences else 0
