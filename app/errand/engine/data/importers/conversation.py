"""A conversation of another program, and its conversion to one of ours."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from errand.engine.core.input_limits import past_moment
from errand.engine.data.conversation_files import default_workspace
from errand.engine.data.import_normalization import in_order, is_absolute_path
from errand.engine.storage.records.agents import ASSISTANT
from errand.engine.storage.records.transfer import Bundle
from errand.protocol.agents import Agent
from errand.protocol.base import JsonObject
from errand.protocol.blocks import Block, NoticeBlock, SummaryBlock, TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Conversation, Node, NodeStatus, Role
from errand.system.paths import Paths
from errand.text.redaction import redact, short_line

# Larger numbers are milliseconds: in seconds this is the year 5138.
_MAX_SECONDS = 100_000_000_000

_MAX_TITLE_LENGTH = 80
_MAX_OWN_TITLE_LENGTH = 500
_MAX_ERROR_LENGTH = 2_000
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(slots=True)
class ForeignNode:
    """A node before it has our ids; the `until_id` of a summary is the id of a foreign record.

    `is_task`: a user message that an agent wrote, as the task of a sub-agent.
    """

    id: str
    parent_id: str | None
    role: Role
    blocks: list[Block]
    at: datetime | None = None
    model: str = ""
    status: NodeStatus = "complete"
    error: str | None = None
    is_task: bool = False


@dataclass(frozen=True, slots=True)
class ForeignLink:
    """Another conversation of the same program; `created_at` is part of its id, see `conversation_id`."""

    source_id: str
    title: str
    created_at: datetime | None


@dataclass(slots=True)
class ForeignConversation:
    """`links` map records that are not nodes to their predecessors: a node's parent may be either.

    `head_id` is the current node of the conversation; None is the last node. `caller` is set for the conversation of a
    sub-agent.
    """

    source_id: str
    title: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    folder: str = ""
    head_id: str | None = None
    caller: ForeignLink | None = None
    nodes: list[ForeignNode] = field(default_factory=list[ForeignNode])
    links: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def add(self, node: ForeignNode) -> None:
        """Add a node. One without content becomes a link."""
        if node.blocks or node.error:
            self.nodes.append(node)
        else:
            self.links[node.id] = node.parent_id


class Chain:
    """Appends nodes in sequence: an agent's texts and calls form one node until a result or a person's message.

    Node ids begin with `key`, unique among the chains of the conversation.
    """

    def __init__(self, conversation: ForeignConversation, key: str, after: str | None = None) -> None:
        self._conversation = conversation
        self._key = key
        self._open: ForeignNode | None = None
        self._count = 0
        self.last_id = after

    def user(self, blocks: Sequence[Block], at: datetime | None, *, is_task: bool = False) -> None:
        if blocks:
            self._add("user", blocks, at, "").is_task = is_task

    def agent(self, blocks: Sequence[Block], at: datetime | None, model: str) -> None:
        if self._open is not None:
            self._open.blocks += blocks
        elif blocks:
            self._open = self._add("assistant", blocks, at, model)

    def result(self, block: Block, at: datetime | None) -> None:
        self._add("tool_result", (block,), at, "")

    def summary(self, text: str, at: datetime | None, model: str = "", until: str | None = None) -> None:
        """Add the summary that replaced, for the model, all messages before, or those `until` this node."""
        if text.strip() and self.last_id is not None:
            nodes = self._conversation.nodes
            count = self._count if until is None else [node.id for node in nodes].index(until) + 1
            block = SummaryBlock(text=text, until_id=until or self.last_id, nodes=count)
            self._add("system", (block,), at, model)

    def take_back(self, summary: str) -> None:
        """Remove the agent's last text if the summary ends with it: it was the reply to the program's own request."""
        node = self._conversation.nodes[-1] if self._conversation.nodes else None
        if node is None or node.id != self.last_id or node.role != "assistant":
            return
        match node.blocks:
            case [*before, TextBlock(text=text)] if text.strip() and summary.rstrip().endswith(text.rstrip()):
                node.blocks = before
            case _:
                return
        if not node.blocks:
            self._conversation.nodes.pop()
            self._count, self.last_id = self._count - 1, node.parent_id
        self._open = None

    def remark(self, text: str, at: datetime | None) -> None:
        """Add an action of the person in the program, which is not a message to the agent."""
        self._add("system", (NoticeBlock(kind="info", text=text),), at, "")

    def fail(self, status: NodeStatus, error: str, at: datetime | None, model: str) -> None:
        """Mark the open reply as failed or cut, or add one that has only an error.

        Models do not read failed replies: one with calls stays as it is, for the sake of their results.
        """
        node = self._open
        if node is None or any(isinstance(block, ToolCallBlock) for block in node.blocks):
            node = self._add("assistant", (), at, model)
        node.status, node.error = status, error
        self._open = None

    def end_reply(self) -> None:
        """Start a new node for the agent's next text."""
        self._open = None

    def _add(self, role: Role, blocks: Sequence[Block], at: datetime | None, model: str) -> ForeignNode:
        self._count += 1
        self._open = None
        node = ForeignNode(f"{self._key}:{self._count}", self.last_id, role, list(blocks), at, model)
        self._conversation.nodes.append(node)
        self.last_id = node.id
        return node


def moment(value: str | float | None) -> datetime | None:
    """Parse a timestamp: ISO text, or seconds or milliseconds since 1970. None if it is invalid."""
    try:
        if isinstance(value, str):
            return past_moment(datetime.fromisoformat(value))
        if value is None or value <= 0:
            return None
        return past_moment(datetime.fromtimestamp(value / 1000 if value > _MAX_SECONDS else value, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def conversation_id(program: str, source_id: str, created_at: datetime | None) -> str:
    """Return the id that the program's conversation `source_id` has here."""
    return _id("conv", created_at or _EPOCH, program, source_id)


def sub_agent_result(block: ToolResultBlock, program: str, called: ForeignLink) -> ToolResultBlock:
    """Return the result of a call that started a sub-agent, with the conversation of that."""
    title = " ".join(called.title.split())[:_MAX_TITLE_LENGTH]
    details: JsonObject = {"conversation_id": conversation_id(program, called.source_id, called.created_at)}
    return msgspec.structs.replace(block, summary=f"its own conversation: {title}", details=details)


def to_bundle(foreign: ForeignConversation, program: str, paths: Paths) -> Bundle:
    """Convert a conversation with at least one node. Proposes its folder as the workspace if it exists here.

    The first of two nodes with one id applies: resumed sessions repeat their beginning.
    """
    times = sorted(node.at for node in foreign.nodes if node.at is not None)
    began = foreign.created_at or (times[0] if times else _EPOCH)
    own_id = conversation_id(program, foreign.source_id or first_text(foreign), began)
    if foreign.caller is not None:
        _add_caller(foreign, foreign.caller, program)
    ids = {node.id: _id("node", node.at or began, own_id, node.id) for node in foreign.nodes}
    agent_id = _id("agent", began, own_id)
    nodes = _nodes(foreign, own_id, agent_id, ids, began)
    head_id = _nearest(foreign.head_id, foreign, ids) or nodes[-1].id
    is_local = _is_local_folder(foreign.folder)
    return Bundle(
        conversation=Conversation(
            id=own_id,
            title=_title(foreign) or program,
            created_at=began,
            updated_at=foreign.updated_at or (times[-1] if times else began),
            workspace=str(default_workspace(paths, own_id)),
            proposed_workspace=foreign.folder if is_local else "",
            # Without links, as workspaces are stored.
            imported_folder=os.path.realpath(foreign.folder) if is_local else _folder_elsewhere(foreign.folder),
        ),
        agents=[
            Agent(
                id=agent_id,
                conversation_id=own_id,
                personality_id=ASSISTANT.id,
                name=program,
                head_id=head_id,
                version=1,
                created_at=began,
            )
        ],
        nodes=nodes,
    )


def _add_caller(foreign: ForeignConversation, caller: ForeignLink, program: str) -> None:
    """Add a first node that names the conversation that called this one."""
    link = conversation_id(program, caller.source_id, caller.created_at)
    text = f"A sub-agent of the conversation “{' '.join(caller.title.split())[:_MAX_TITLE_LENGTH]}” ({link})."
    first_id = "caller"
    for node in foreign.nodes:
        node.parent_id = first_id if node.parent_id is None else node.parent_id
    notice = NoticeBlock(kind="info", text=text)
    foreign.nodes.insert(0, ForeignNode(first_id, None, "system", [notice], foreign.created_at))


def _nodes(
    foreign: ForeignConversation, conversation_id: str, agent_id: str, ids: dict[str, str], began: datetime
) -> list[Node]:
    first = {node.id: node for node in reversed(foreign.nodes)}
    nodes = [
        Node(
            id=ids[node.id],
            conversation_id=conversation_id,
            parent_id=_nearest(node.parent_id, foreign, ids),
            role=node.role,
            author=_author(node, agent_id),
            blocks=tuple(_with_our_id(block, foreign, ids) for block in node.blocks),
            status=node.status,
            created_at=node.at or began,
            model=node.model,
            error=node.error[:_MAX_ERROR_LENGTH] if node.error else None,
        )
        for node in first.values()
    ]
    return in_order(nodes[::-1])


def _with_our_id(block: Block, foreign: ForeignConversation, ids: dict[str, str]) -> Block:
    if not isinstance(block, SummaryBlock):
        return block
    return msgspec.structs.replace(block, until_id=_nearest(block.until_id, foreign, ids) or "")


def _id(kind: str, at: datetime, *names: str) -> str:
    """Return an id in our format, with a digest instead of random digits."""
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "replace")).hexdigest()
    return f"{kind}_{max(0, int(at.timestamp() * 1000)):011x}{digest[:12]}"


def _nearest(record_id: str | None, foreign: ForeignConversation, ids: dict[str, str]) -> str | None:
    """Return the node of a record, or its nearest preceding node; None at the beginning, and for a cycle."""
    passed: set[str] = set()
    while record_id is not None and record_id not in ids and record_id not in passed:
        passed.add(record_id)
        record_id = foreign.links.get(record_id)
    return ids.get(record_id) if record_id is not None else None


def _author(node: ForeignNode, agent_id: str) -> str:
    match node.role:
        case "user":
            return "engine" if node.is_task else "user"
        case "assistant":
            return agent_id
        case _:
            return "engine"


def _title(foreign: ForeignConversation) -> str:
    """Return the title without keys, which are recognized before a line is cut."""
    texts = (block.text for node in foreign.nodes for block in node.blocks if isinstance(block, TextBlock))
    return short_line(foreign.title, _MAX_OWN_TITLE_LENGTH, redact) or short_line(
        next(texts, ""), _MAX_TITLE_LENGTH, redact
    )


def first_text(foreign: ForeignConversation) -> str:
    """Return the first text, the default title."""
    texts = (block.text for node in foreign.nodes for block in node.blocks if isinstance(block, TextBlock))
    return " ".join(next(texts, "").split())[:200]


def _folder_elsewhere(folder: str) -> str:
    return folder if is_absolute_path(folder) else ""


def _is_local_folder(folder: str) -> bool:
    return folder.startswith("/") and os.path.isdir(folder)
