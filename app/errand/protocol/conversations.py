"""Conversations, their nodes, and chats with one agent."""

from typing import Literal

from errand.protocol.agents import Agent, Color
from errand.protocol.base import DerivedId, Method, Timestamp, Wire
from errand.protocol.blocks import Block, TextBlock
from errand.protocol.tasks.groups import ApproveMode, NetworkMode
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage

Role = Literal["user", "assistant", "tool_result", "system"]
NodeStatus = Literal["streaming", "complete", "failed", "cut"]

TurnRule = Literal["addressed", "round_robin", "moderator"]


class TurnTaking(Wire, frozen=True, kw_only=True):
    """The order in which several agents reply.

    `addressed`: the agent that a message names with @, else the last speaker; an agent that names another hands over
    to it. `round_robin`: after a person's message each agent once, in the order in which they joined. `moderator`:
    `moderator_id` replies first and after each reply; the agent it names replies next. `limit` is the maximum number
    of replies in a row without a message from a person.
    """

    rule: TurnRule = "addressed"
    limit: int = 6
    moderator_id: str | None = None


class FormerAgent(Wire, frozen=True, kw_only=True):
    """A deleted agent. Its messages stay, with its name and color."""

    id: str
    name: str
    color: Color = ""


class Conversation(Wire, frozen=True, kw_only=True):
    """A tree of nodes, shown in a tab. `workspace` is the working folder of its tasks.

    `proposed_workspace` is the folder named in the file that the conversation was imported from: no task starts
    until a person confirms that folder or chooses another one (`workspace` of `conversation/change`, or of a start).
    `imported_folder` is the folder that its imported messages were about, also after that and if it is not on this
    machine: in memory they count as of that folder.
    `kept` are nodes whose text stays in the model's context when the branch is summarised. `former` are the deleted
    agents, oldest first. `approve` is the approval mode of its tasks, `network` says which of their commands have the
    network. Without `remembers`, nothing of it is kept in memory; without `recalls`, its agents are given nothing from
    memory.
    """

    id: str
    title: str
    created_at: Timestamp
    updated_at: Timestamp
    workspace: str = ""
    proposed_workspace: str = ""
    imported_folder: str = ""
    owner: str = "local"
    archived: bool = False
    pinned: bool = False
    turn_taking: TurnTaking = TurnTaking()
    kept: tuple[str, ...] = ()
    former: tuple[FormerAgent, ...] = ()
    approve: ApproveMode = "ask"
    network: NetworkMode = "asked"
    remembers: bool = True
    recalls: bool = True


class Node(Wire, frozen=True, kw_only=True):
    """One immutable entry of the tree. Only a `streaming` node is replaced, by the finished node with the same id.

    `author` is an agent's id, `user` or `engine`. A message from the engine to an agent, for example to continue,
    has the role `user` and the author `engine`. `cut` and `failed` mark replies that did not end well. `turn` is the
    turn of its task, 0 without a task.
    """

    id: str
    conversation_id: str
    parent_id: str | None
    role: Role
    author: str
    blocks: tuple[Block, ...]
    status: NodeStatus
    created_at: Timestamp
    task_id: str | None = None
    turn: int = 0
    model: str = ""
    usage: Usage | None = None
    error: str | None = None

    @property
    def is_from_person(self) -> bool:
        return self.role == "user" and self.author != "engine"

    @property
    def task_from(self) -> str:
        """The name of the agent that gave this message to its sub-agent as the task; empty for other messages."""
        if self.role != "user" or self.author != "engine":
            return ""
        return next((block.task_from for block in self.blocks if isinstance(block, TextBlock)), "")


class Position(Wire, frozen=True, kw_only=True):
    """A conversation and one of its nodes, always created as a pair. A position changes only within its tree."""

    conversation_id: str
    node_id: str | None

    def advance(self, node_id: str | None) -> "Position":
        """Return the position at another node of the same tree; None is the position before the first message."""
        return Position(conversation_id=self.conversation_id, node_id=node_id)


class ConversationListParams(Wire, frozen=True, kw_only=True):
    """Most recently changed first. `cursor` is the `next_cursor` of the previous page.

    `pinned` true selects pinned conversations only, false all others, null both; likewise `archived`. `id_part` selects
    by a part of the id, `title_part` by a part of the title, whatever its case, `workspace` by the absolute path of
    the working folder. `with_tasks` adds the newest task of each conversation.
    """

    cursor: str | None = None
    limit: int = 50
    archived: bool | None = False
    pinned: bool | None = None
    id_part: str = ""
    title_part: str = ""
    workspace: str | None = None
    with_tasks: bool = False


class ConversationListResult(Wire, frozen=True, kw_only=True):
    """A page by `workspace` may be shorter than its limit; only `next_cursor` says whether more follows."""

    conversations: tuple[Conversation, ...]
    next_cursor: str | None
    tasks: tuple[Task, ...] = ()


class ConversationGetParams(Wire, frozen=True, kw_only=True):
    conversation_id: str


class ConversationGetResult(Wire, frozen=True, kw_only=True):
    conversation: Conversation


class ConversationNodesParams(Wire, frozen=True, kw_only=True):
    """One page of a branch, read from `leaf_id` towards the root.

    Without it the branch ends at the head of `agent_id`, by default of the first agent. With `to_leaf` it goes on to
    the newest leaf below `leaf_id`. `before_id` continues above the oldest node of the previous page.
    """

    conversation_id: str
    leaf_id: str | None = None
    agent_id: str | None = None
    to_leaf: bool = False
    before_id: str | None = None
    limit: int = 50


class Fork(Wire, frozen=True, kw_only=True):
    """A node with several branches below it: its children, oldest first.

    `parent_id` null is the position before the first message.
    """

    parent_id: str | None
    child_ids: tuple[str, ...]


class ConversationNodesResult(Wire, frozen=True, kw_only=True):
    """Oldest first. `has_more` is true if older nodes exist. A streaming node has the text that was sent so far.

    `forks` has an entry for each of these nodes that has siblings, and for the last one if more than one node
    follows it or it is not the end of its branch.
    """

    nodes: tuple[Node, ...]
    has_more: bool
    forks: tuple[Fork, ...] = ()


class TreeNode(Wire, frozen=True, kw_only=True):
    """A node as the tree panel draws it. `text` is the beginning of its text, in one line.

    `task_from` is set for the first message of a sub-agent: it follows the reply that called the sub-agent, though its
    branch begins with it.
    """

    id: str
    parent_id: str | None
    role: Role
    status: NodeStatus
    created_at: Timestamp
    text: str
    task_id: str | None = None
    task_from: str = ""


class FoundNode(Wire, frozen=True, kw_only=True):
    """A node that was looked for by its id. `text` is the beginning of its text in one line, empty for tool results."""

    id: str
    conversation_id: str
    role: Role
    created_at: Timestamp
    text: str


class ConversationFindNodesParams(Wire, frozen=True, kw_only=True):
    """Nodes whose id contains `id_part`, newest first: of all branches of one conversation, or of all conversations."""

    id_part: str = ""
    conversation_id: str | None = None
    limit: int = 50


class ConversationFindNodesResult(Wire, frozen=True, kw_only=True):
    nodes: tuple[FoundNode, ...]
    has_more: bool


class TreeHead(Wire, frozen=True, kw_only=True):
    """The position of an agent in the tree: its head, or the nearest listed node above it."""

    agent_id: str
    node_id: str | None


class ConversationTreeParams(Wire, frozen=True, kw_only=True):
    conversation_id: str


class ConversationTreeResult(Wire, frozen=True, kw_only=True):
    """All nodes written by a person or an agent, oldest first, and the agents' heads.

    Tool results and remarks of the engine are omitted: `parent_id` is the nearest listed ancestor.
    """

    nodes: tuple[TreeNode, ...]
    agents: tuple[Agent, ...]
    tasks: tuple[Task, ...]
    heads: tuple[TreeHead, ...] = ()


class ConversationSearchParams(Wire, frozen=True, kw_only=True):
    """Full-text search over all nodes.

    Words are joined by AND, "quotes" make a phrase, the last word may be a prefix of at least 3 letters. Operators
    narrow the search, with or without words: `from:user`, `from:agent` or an agent's name, `in:` words of a title or
    a conversation's id, `tool:shell`, `before:` and `after:` a day (2026-11-01), a month or a year; `after:`
    includes the named period. Quote values that contain blanks.
    """

    text: str
    limit: int = 20
    conversation_id: str | None = None


class SearchHit(Wire, frozen=True, kw_only=True):
    """One matching node. `snippet` marks the words with \\u2068 and \\u2069.

    `before` and `after` are the beginnings of the adjacent nodes on its branch, in one line. The node is number
    `place` of `of` nodes of its conversation, in the order of writing.
    """

    conversation_id: str
    conversation_title: str
    node_id: str
    role: Role
    snippet: str
    created_at: Timestamp
    conversation_archived: bool = False
    before: str = ""
    after: str = ""
    place: int = 0
    of: int = 0


class ConversationSearchResult(Wire, frozen=True, kw_only=True):
    """`titles` are conversations whose title matches, most recently changed first, archived ones included.

    `words` is the query without its operators. `advice` explains an invalid operator value; no search was made then.
    """

    hits: tuple[SearchHit, ...]
    titles: tuple[Conversation, ...] = ()
    words: str = ""
    advice: str = ""


class ConversationChangeParams(Wire, frozen=True, kw_only=True):
    """Change the given fields only.

    A kept node stays in the model's context when the branch is summarised, together with its tool results or its
    call, until it is released. `workspace` is the absolute path of the working folder of the next tasks. `approve` is
    the approval mode, also of running tasks from their next check on; it settles open approvals that it allows or
    denies. `network` holds for the next tasks.
    """

    conversation_id: str
    title: str | None = None
    archived: bool | None = None
    pinned: bool | None = None
    turn_taking: TurnTaking | None = None
    keep_node_id: str | None = None
    release_node_id: str | None = None
    workspace: str | None = None
    approve: ApproveMode | None = None
    network: NetworkMode | None = None
    remembers: bool | None = None
    recalls: bool | None = None


class ConversationChangeResult(Wire, frozen=True, kw_only=True):
    conversation: Conversation


class AgentChatParams(Wire, frozen=True, kw_only=True):
    """Ask an agent for one reply at its head: a task in `chat` mode.

    `version` and `node_id` are the agent's version and head as the caller saw them. If the agent has moved since, or
    is running, the call does not wait: a second agent answers beside it, after `node_id`, or if that is null after
    the node where the agent's last task started. The client may choose `task_id`; repeating an id returns the
    existing chat. The other fields are as in `task/start`.
    """

    agent_id: str
    prompt: str
    version: int | None = None
    node_id: str | None = None
    task_id: str | None = None
    attachments: tuple[str, ...] = ()
    model: str | None = None
    api_base: str | None = None
    api_key: str | None = None
    approve: ApproveMode | None = None


class AgentChatResult(Wire, frozen=True, kw_only=True):
    """`position` is the question's node. `branched`: another caller was first, `agent` answers beside the one asked.

    The first caller learns of it from the `agentUpdate` of that agent and from a remark at the head of its branch.
    """

    agent: Agent
    task: Task
    position: Position
    branched: bool


CONVERSATION_LIST = Method(
    "conversation/list",
    ConversationListParams,
    ConversationListResult,
    False,
    "Get a page of conversations.",
)

CONVERSATION_GET = Method(
    "conversation/get",
    ConversationGetParams,
    ConversationGetResult,
    False,
    "Get a conversation.",
)

CONVERSATION_NODES = Method(
    "conversation/nodes",
    ConversationNodesParams,
    ConversationNodesResult,
    False,
    "Get a page of a branch.",
)

CONVERSATION_FIND_NODES = Method(
    "conversation/find_nodes",
    ConversationFindNodesParams,
    ConversationFindNodesResult,
    False,
    "Find nodes by a part of their id.",
)

CONVERSATION_SEARCH = Method(
    "conversation/search",
    ConversationSearchParams,
    ConversationSearchResult,
    False,
    "Search the text of all nodes.",
)

CONVERSATION_CHANGE = Method(
    "conversation/change",
    ConversationChangeParams,
    ConversationChangeResult,
    True,
    "Change the properties of a conversation.",
)

CONVERSATION_TREE = Method(
    "conversation/tree",
    ConversationTreeParams,
    ConversationTreeResult,
    False,
    "Get the whole tree of a conversation.",
)

AGENT_CHAT = Method(
    "agent/chat",
    AgentChatParams,
    AgentChatResult,
    True,
    "Ask an agent for one reply.",
    makes=DerivedId("task_id", "task"),
)

METHODS = (
    CONVERSATION_LIST,
    CONVERSATION_GET,
    CONVERSATION_NODES,
    CONVERSATION_TREE,
    CONVERSATION_FIND_NODES,
    CONVERSATION_SEARCH,
    CONVERSATION_CHANGE,
    AGENT_CHAT,
)
