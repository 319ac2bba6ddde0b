"""Normalizes an imported conversation: validates it, ends its tasks, and maps its paths to this data folder."""

import math
import re
from collections import deque
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath

import msgspec

from errand.engine.agent.run.task_state import END_STATUSES
from errand.engine.core.errors import InvalidParams
from errand.engine.data.conversation_files import default_workspace
from errand.engine.storage.records.executions import ExecutionEnd, ExecutionStart
from errand.engine.storage.records.transfer import Bundle
from errand.engine.storage.records.turns import TurnRow
from errand.engine.tools.control.todo import MAX_ITEM_LENGTH, MAX_ITEMS
from errand.engine.tools.task import MAX_DEPTH, one_line_title
from errand.protocol.agents import Agent
from errand.protocol.blocks import Block, FileBlock, ImageBlock, ToolResultBlock
from errand.protocol.conversations import Conversation, Node, TurnTaking
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.task import Task, replace_fields
from errand.protocol.usage import Usage
from errand.system.paths import Paths
from errand.text.redaction import redact

# Ids name folders, so this excludes `..`.
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
# The default of the setting: a retry inherits the maximum of turns of the task it repeats.
_MAX_TURNS = 50
_MAX_KEPT_NODES = 100
_MAX_NUMBER = 2**40
_MAX_PATH_LENGTH = 4096
_WAS_UNDER_WAY = "It was under way when it was exported, and does not go on here. Send a message to go on from there."


def check(bundle: Bundle) -> None:
    """Check a conversation. Raises `InvalidParams` if it is inconsistent: ids are missing or outside of it."""
    node_ids = {node.id for node in bundle.nodes}
    task_ids = {task.id for task in bundle.tasks}
    agent_ids = {agent.id for agent in bundle.agents}
    executions = [part.execution_id for part in bundle.executions if isinstance(part, ExecutionStart)]
    ids = [*node_ids, *task_ids, *agent_ids, *executions, *(ask.id for ask in bundle.asks), bundle.conversation.id]
    results = [(part.execution_id, part.task_id) for part in bundle.executions if isinstance(part, ExecutionEnd)]
    _require(all(map(_ID.fullmatch, ids)), "an id that is not letters, digits, `-` and `_`")
    _require(len(node_ids) == len(bundle.nodes) and len(task_ids) == len(bundle.tasks), "the same id twice")
    _require(len(agent_ids) == len(bundle.agents), "the same id twice")
    belongings = (*bundle.agents, *bundle.tasks, *bundle.nodes, *bundle.asks)
    _require(
        all(part.conversation_id == bundle.conversation.id for part in belongings), "parts of another conversation"
    )
    of_tasks = (*bundle.turns, *bundle.executions, *bundle.asks)
    _require(all(part.task_id in task_ids for part in of_tasks), "parts of a task that is not there")
    of_here = (None, bundle.conversation.id)
    _require(all(turn.conversation_id in of_here for turn in bundle.turns), "parts of another conversation")
    _require(
        all(agent.head_id is None or agent.head_id in node_ids for agent in bundle.agents), "a head that is nowhere"
    )
    _require(
        all(node.parent_id is None or node.parent_id in node_ids for node in bundle.nodes), "a message without parent"
    )
    _require(
        all(node.task_id is None or node.task_id in task_ids for node in bundle.nodes), "a message of another task"
    )
    started = {(part.execution_id, part.task_id) for part in bundle.executions if isinstance(part, ExecutionStart)}
    _require(started.issuperset(results) and len(started) == len(executions), "a result of a call that is not there")
    _require(all(map(_is_count, _numbers(bundle))), "a number that counts nothing")
    _require(all(map(_is_timestamp, _timestamps(bundle))), "a time that is none")


def in_order(nodes: list[Node]) -> list[Node]:
    """Sort parents before children, otherwise stable; raises `InvalidParams` for a cycle."""
    waiting: dict[str, list[Node]] = {}
    placed: set[str] = set()
    ordered: list[Node] = []
    for node in nodes:
        if node.parent_id is not None and node.parent_id not in placed:
            waiting.setdefault(node.parent_id, []).append(node)
            continue
        ready = deque([node])
        while ready:
            ready_node = ready.popleft()
            placed.add(ready_node.id)
            ordered.append(ready_node)
            ready += waiting.pop(ready_node.id, [])
    _require(not waiting, "messages in a circle")
    return ordered


def normalized(bundle: Bundle) -> Bundle:
    """End all tasks, cancel open asks, and mark incomplete replies as cut."""
    conversation, now = _normalized_conversation(bundle), datetime.now(UTC)
    depths = {task.id: task.origin.depth for task in bundle.tasks}
    return Bundle(
        conversation=conversation,
        agents=[_normalized_agent(agent, depths.keys()) for agent in bundle.agents],
        tasks=[_ended_task(task, depths, conversation.updated_at, now) for task in bundle.tasks],
        turns=[_turn(turn, now) for turn in bundle.turns],
        executions=bundle.executions,
        asks=[
            msgspec.structs.replace(ask, status="cancelled") if ask.status == "waiting" else ask for ask in bundle.asks
        ],
        nodes=[
            msgspec.structs.replace(node, status="cut") if node.status == "streaming" else node
            for node in in_order(bundle.nodes)
        ],
    )


def with_local_paths(bundle: Bundle, pictures: dict[str, str], old_home: str, paths: Paths) -> Bundle:
    """Replace paths: `pictures` maps the original paths of included pictures to their local copies.

    A picture that was not included becomes a file reference: models receive the content of a picture's path, which
    could be any file. The conversation gets its default workspace; another folder named in the file is only
    proposed, for a person to confirm.
    """
    conversation = bundle.conversation
    own = str(default_workspace(paths, conversation.id))
    before = str(Path(old_home) / "workspaces" / conversation.id)
    named = conversation.proposed_workspace or conversation.workspace
    is_named = named not in (own, before) and is_absolute_path(named)
    imported = conversation.imported_folder if is_absolute_path(conversation.imported_folder) else ""
    return Bundle(
        conversation=msgspec.structs.replace(
            conversation,
            workspace=own,
            proposed_workspace=named if is_named and named.startswith("/") else "",
            imported_folder=imported or (named if is_named else ""),
        ),
        agents=bundle.agents,
        tasks=[replace_fields(task, workspace=own) for task in bundle.tasks],
        turns=bundle.turns,
        executions=bundle.executions,
        asks=bundle.asks,
        nodes=[
            msgspec.structs.replace(
                node, blocks=tuple(_with_local_picture(block, pictures, paths) for block in node.blocks)
            )
            for node in bundle.nodes
        ],
    )


def is_absolute_path(folder: str) -> bool:
    """Return True for the path of a folder on this or another machine, also one with Windows."""
    is_absolute = folder.startswith("/") or PureWindowsPath(folder).is_absolute()
    return is_absolute and "\0" not in folder and len(folder) <= _MAX_PATH_LENGTH


def _normalized_conversation(bundle: Bundle) -> Conversation:
    """Limit kept messages and the rounds between agents to values that a person could have set here."""
    conversation, turns = bundle.conversation, bundle.conversation.turn_taking
    agent_ids, node_ids = {agent.id for agent in bundle.agents}, {node.id for node in bundle.nodes}
    is_fitting = turns.limit >= 1 and turns.moderator_id in (None, *agent_ids)
    shortened = msgspec.structs.replace(turns, limit=min(turns.limit, TurnTaking().limit))
    return msgspec.structs.replace(
        conversation,
        title=redact(conversation.title),
        updated_at=min(conversation.updated_at, datetime.now(UTC)),
        turn_taking=shortened if is_fitting else TurnTaking(),
        kept=tuple(node_id for node_id in conversation.kept if node_id in node_ids)[:_MAX_KEPT_NODES],
        approve=_harmless(conversation.approve),
        network="asked" if conversation.network == "on" else conversation.network,
    )


def _harmless(mode: ApproveMode) -> ApproveMode:
    """Return a mode that allows nothing without a person."""
    return "ask" if mode in ("all", "edits", "auto") else mode


def _normalized_agent(agent: Agent, task_ids: Set[str]) -> Agent:
    """Return a sub-agent without the task that called it would be shown nowhere."""
    return msgspec.structs.replace(agent, called_by=agent.called_by if agent.called_by in task_ids else None)


def _ended_task(task: Task, depths: Mapping[str, int], at: datetime, now: datetime) -> Task:
    """Return an ended task without settings or permissions that a person did not choose here."""
    queue = task.queue
    is_called = 1 <= task.origin.depth <= MAX_DEPTH and depths.get(task.origin.parent_id or "") == task.origin.depth - 1
    task = replace_fields(
        task,
        started_at=min(task.started_at, now),
        api_base=None,
        approve=_harmless(task.options.approve),
        network="asked" if task.request.network == "on" else task.request.network,
        max_turns=max(1, min(task.budget.max_turns, _MAX_TURNS)),
        budget_usd=None,
        max_minutes=None,
        max_tokens=None,
        allowance=None,
        near=(),
        stopping=False,
        current_tool=None,
        calls=(),
        detail="",
        ask_id=None,
        queue=(),
        resumes=False,
        retry_at=None,
        todo=tuple(msgspec.structs.replace(item, text=item.text[:MAX_ITEM_LENGTH]) for item in task.todo[:MAX_ITEMS]),
        follows=task.origin.follows if task.origin.follows in depths else None,
        parent_id=task.origin.parent_id if is_called else None,
        depth=task.origin.depth if is_called else 0,
        title=one_line_title(task.origin.title),
        tools=(),
    )
    if task.activity.status in END_STATUSES and task.outcome.ended_at is not None:
        return task
    unread = f" Not read any more: {', '.join(f'“{entry.text}”' for entry in queue)}." if queue else ""
    return replace_fields(
        task, status="cancelled", stop_reason="manual_stop", error=f"{_WAS_UNDER_WAY}{unread}", ended_at=min(at, now)
    )


def _turn(turn: TurnRow, now: datetime) -> TurnRow:
    """End an open call, and move dates in the future to now: they would count against later daily limits."""
    minute = turn.minute if turn.minute is None else min(turn.minute, int(now.timestamp()) // 60)
    return replace(turn, status="cut" if turn.status == "started" else turn.status, minute=minute)


def _numbers(bundle: Bundle) -> Iterable[float | None]:
    of_tasks = (usage for task in bundle.tasks for usage in (task.progress.usage, task.progress.delegated))
    of_nodes = (node.usage for node in bundle.nodes if node.usage is not None)
    for usage in (*of_tasks, *of_nodes, *bundle.turns):
        yield from _usage_numbers(usage)
    for turn in bundle.turns:
        yield from (turn.turn, turn.minute)
        yield from (number for part in turn.context or () for number in (part.characters, part.items))
    for task in bundle.tasks:
        yield from (task.budget.max_turns, task.progress.step_count, task.activity.worked_s, task.budget.budget_usd)
        yield from (task.budget.max_minutes, task.budget.max_tokens)
        yield from (task.origin.call_turn, task.progress.delegated_turns)
    yield from (agent.version for agent in bundle.agents)
    yield from (node.turn for node in bundle.nodes)
    yield from (item.turn for item in bundle.executions if isinstance(item, ExecutionStart))


def _usage_numbers(usage: Usage | TurnRow) -> Iterable[float | None]:
    tokens = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return (*tokens, usage.cost_usd, usage.seconds)


def _is_count(number: float | None) -> bool:
    return number is None or (math.isfinite(number) and 0 <= number < _MAX_NUMBER)


def _timestamps(bundle: Bundle) -> Iterable[str]:
    return (at for turn in bundle.turns for at in (turn.started_at, turn.finished_at) if at is not None)


def _is_timestamp(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _with_local_picture(block: Block, pictures: dict[str, str], paths: Paths) -> Block:
    if isinstance(block, ToolResultBlock) and block.images:
        images = (_with_local_picture(image, pictures, paths) for image in block.images)
        return msgspec.structs.replace(
            block, images=tuple(image_block for image_block in images if isinstance(image_block, ImageBlock))
        )
    if not isinstance(block, ImageBlock) or not block.path:
        return block
    path = pictures.get(block.path)
    if path is None and Path(block.path).parent.parent == paths.attachments and ".." not in Path(block.path).parts:
        path = block.path
    if path is None:
        return FileBlock(path=block.path, name=block.name or Path(block.path).name, size=0)
    return msgspec.structs.replace(block, path=path)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise InvalidParams(f"it has {what}")
