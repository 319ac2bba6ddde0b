"""Makes an imported conversation fit in here: checked as one whole, at rest, and with the places it names in this home.

Permissions do not travel: no grant comes along, and no task that would run all without asking or go on by itself.
"""

import re
from pathlib import Path

import msgspec

from app.engine.data.files import own_workspace
from app.engine.errors import InvalidParams
from app.engine.storage.executions import Started
from app.engine.storage.transfer import Bundle
from app.paths import Paths
from app.protocol.blocks import Block, FileBlock, ImageBlock, ToolResultBlock
from app.protocol.conversations import Node
from app.protocol.tasks import Task

# Ids name folders, and `..` is none of them.
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


def check(bundle: Bundle) -> None:
    """Raises `InvalidParams` where it is no conversation: ids that point nowhere, or outside of it."""
    node_ids = {node.id for node in bundle.nodes}
    task_ids = {task.id for task in bundle.tasks}
    agent_ids = {agent.id for agent in bundle.agents}
    executions = [one.execution_id for one in bundle.executions if isinstance(one, Started)]
    ids = [*node_ids, *task_ids, *agent_ids, *executions, *(ask.id for ask in bundle.asks), bundle.conversation.id]
    _hold(all(map(_ID.fullmatch, ids)), "an id that is not letters, digits, `-` and `_`")
    _hold(len(node_ids) == len(bundle.nodes) and len(task_ids) == len(bundle.tasks), "the same id twice")
    _hold(len(agent_ids) == len(bundle.agents), "the same id twice")
    belongings = (*bundle.agents, *bundle.tasks, *bundle.nodes, *bundle.asks)
    _hold(all(one.conversation_id == bundle.conversation.id for one in belongings), "parts of another conversation")
    of_tasks = (*bundle.turns, *bundle.executions, *bundle.asks)
    _hold(all(one.task_id in task_ids for one in of_tasks), "parts of a task that is not there")
    of_here = (None, bundle.conversation.id)
    _hold(all(turn.conversation_id in of_here for turn in bundle.turns), "parts of another conversation")
    _hold(all(agent.head_id is None or agent.head_id in node_ids for agent in bundle.agents), "a head that is nowhere")
    _hold(
        all(node.parent_id is None or node.parent_id in node_ids for node in bundle.nodes), "a message without parent"
    )


def in_order(nodes: list[Node]) -> list[Node]:
    """Each after its parent, otherwise as they stand; `InvalidParams` where some are their own ancestors."""
    waiting: dict[str, list[Node]] = {}
    placed: set[str] = set()
    ordered: list[Node] = []
    for node in nodes:
        if node.parent_id is not None and node.parent_id not in placed:
            waiting.setdefault(node.parent_id, []).append(node)
            continue
        ready = [node]
        while ready:
            one = ready.pop(0)
            placed.add(one.id)
            ordered.append(one)
            ready += waiting.pop(one.id, [])
    _hold(not waiting, "messages in a circle")
    return ordered


def settled(bundle: Bundle) -> Bundle:
    """What was under way when it was exported is interrupted, what was asked is cancelled, half replies are cut."""
    return Bundle(
        conversation=bundle.conversation,
        agents=bundle.agents,
        tasks=[_settled(task) for task in bundle.tasks],
        turns=bundle.turns,
        executions=bundle.executions,
        asks=[
            msgspec.structs.replace(ask, status="cancelled") if ask.status == "waiting" else ask for ask in bundle.asks
        ],
        nodes=[
            msgspec.structs.replace(node, status="cut") if node.status == "streaming" else node
            for node in in_order(bundle.nodes)
        ],
    )


def moved_in(bundle: Bundle, pictures: dict[str, str], old_home: str, paths: Paths) -> Bundle:
    """`pictures` maps the paths of pictures that came along to where they are now.

    A picture that did not is named only: models are sent what a picture's path names, and it could be any file.
    """
    workspace = bundle.conversation.workspace
    conversation_id = bundle.conversation.id
    if old_home and workspace == str(Path(old_home) / "workspaces" / conversation_id):
        workspace = str(own_workspace(paths, conversation_id))
    return Bundle(
        conversation=msgspec.structs.replace(bundle.conversation, workspace=workspace),
        agents=bundle.agents,
        tasks=[_with_attachments(task, pictures) for task in bundle.tasks],
        turns=bundle.turns,
        executions=bundle.executions,
        asks=bundle.asks,
        nodes=[
            msgspec.structs.replace(node, blocks=tuple(_moved(block, pictures, paths) for block in node.blocks))
            for node in bundle.nodes
        ],
    )


def _settled(task: Task) -> Task:
    """It goes on when somebody says so, whatever it was about to do by itself where it comes from."""
    approve = "ask" if task.approve == "all" else task.approve
    task = msgspec.structs.replace(task, approve=approve, resumes=False, retry_at=None)
    if task.ended_at is not None or task.status == "interrupted":
        return task
    return msgspec.structs.replace(
        task, status="interrupted", stopping=False, current_tool=None, ask_id=None, activity=""
    )


def _with_attachments(task: Task, pictures: dict[str, str]) -> Task:
    queue = tuple(
        msgspec.structs.replace(one, attachments=tuple(pictures.get(path, path) for path in one.attachments))
        for one in task.queue
    )
    return msgspec.structs.replace(task, queue=queue)


def _moved(block: Block, pictures: dict[str, str], paths: Paths) -> Block:
    if isinstance(block, ToolResultBlock) and block.images:
        images = (_moved(image, pictures, paths) for image in block.images)
        return msgspec.structs.replace(block, images=tuple(one for one in images if isinstance(one, ImageBlock)))
    if not isinstance(block, ImageBlock) or not block.path:
        return block
    path = pictures.get(block.path)
    if path is None and Path(block.path).parent.parent == paths.attachments and ".." not in Path(block.path).parts:
        path = block.path
    if path is None:
        return FileBlock(path=block.path, name=block.name or Path(block.path).name, size=0)
    return msgspec.structs.replace(block, path=path)


def _hold(condition: bool, what: str) -> None:
    if not condition:
        raise InvalidParams(f"it has {what}")
