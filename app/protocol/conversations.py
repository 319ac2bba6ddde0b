"""Conversations, nodes, comparisons, chats with one agent."""

from typing import Literal

from app.protocol.agents import Agent, Color
from app.protocol.base import Method, Timestamp, Wire
from app.protocol.blocks import Block
from app.protocol.tasks import ApproveMode, Task, TaskStartParams
from app.protocol.usage import Usage

Role = Literal["user", "assistant", "tool_result", "system"]
NodeStatus = Literal["streaming", "complete", "failed", "cut"]

TurnRule = Literal["addressed", "round_robin", "moderator"]


class TurnTaking(Wire, frozen=True, kw_only=True):
    """Who of several agents speaks after whom.

    `addressed`: whom a message names with @, else who spoke last; an agent that names another hands over to it.
    `round_robin`: after a person's message each once, in the order in which they joined. `moderator`: `moderator_id`
    speaks first and after each; whom it names speaks next. `limit` is the most replies in a row without a person.
    """

    rule: TurnRule = "addressed"
    limit: int = 6
    moderator_id: str | None = None


class FormerAgent(Wire, frozen=True, kw_only=True):
    """An agent that was deleted: what it wrote stays, and who it was."""

    id: str
    name: str
    color: Color = ""


class Conversation(Wire, frozen=True, kw_only=True):
    """A tree of nodes; what a tab shows. `workspace` is the folder its tasks work in.

    `proposed_workspace` is what the file names that it was imported from: until a person has confirmed that folder or
    chosen another one (`workspace` of `conversation/change`, or of a start) no task begins here. `kept` are nodes whose
    text stays in the model's context whatever is summarised. `former` are the agents that were deleted, oldest first.
    """

    id: str
    title: str
    created_at: Timestamp
    updated_at: Timestamp
    workspace: str = ""
    proposed_workspace: str = ""
    owner: str = "local"
    archived: bool = False
    pinned: bool = False
    turn_taking: TurnTaking = TurnTaking()
    kept: tuple[str, ...] = ()
    former: tuple[FormerAgent, ...] = ()


class Node(Wire, frozen=True, kw_only=True):
    """One immutable entry of the tree; only a `streaming` one is replaced, by its finished self under the same id.

    `author` is an agent's id, `user` or `engine`: what the engine tells an agent, to go on for instance, has the role
    `user` and the author `engine`. `cut` and `failed` mark replies that did not end well. `turn` is the turn of the
    task it belongs to, 0 where there is none.
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


class Position(Wire, frozen=True, kw_only=True):
    """A conversation and a node of it; only made together. A position changes within its tree alone."""

    conversation_id: str
    node_id: str | None

    def advance(self, node_id: str | None) -> "Position":
        """The position at another node of the same tree; None is the place before the first message."""
        return Position(conversation_id=self.conversation_id, node_id=node_id)


class ConversationListParams(Wire, frozen=True, kw_only=True):
    """Newest change first. `cursor` is the `next_cursor` of the page before.

    `pinned` true gives the pinned ones alone, false all others, null both.
    """

    cursor: str | None = None
    limit: int = 50
    archived: bool = False
    pinned: bool | None = None


class ConversationListResult(Wire, frozen=True, kw_only=True):
    conversations: tuple[Conversation, ...]
    next_cursor: str | None


class ConversationGetParams(Wire, frozen=True, kw_only=True):
    conversation_id: str


class ConversationGetResult(Wire, frozen=True, kw_only=True):
    conversation: Conversation


class ConversationNodesParams(Wire, frozen=True, kw_only=True):
    """One page of a branch, read from `leaf_id` (default: the head of the first agent) towards the root.

    `before_id` continues above the oldest node of the page before.
    """

    conversation_id: str
    leaf_id: str | None = None
    before_id: str | None = None
    limit: int = 50


class Fork(Wire, frozen=True, kw_only=True):
    """A place where a conversation goes on in several ways: the children of one node, oldest first.

    `parent_id` null is the place before the first message.
    """

    parent_id: str | None
    child_ids: tuple[str, ...]


class ConversationNodesResult(Wire, frozen=True, kw_only=True):
    """Oldest first. `has_more` says that older ones exist.

    `forks` has one for each of these nodes that has siblings, and for the last one if more than one node follows it
    or it is not the end of its branch.
    """

    nodes: tuple[Node, ...]
    has_more: bool
    forks: tuple[Fork, ...] = ()


class TreeNode(Wire, frozen=True, kw_only=True):
    """A node as the tree panel draws it: `text` is the beginning of what it says, in one line."""

    id: str
    parent_id: str | None
    role: Role
    status: NodeStatus
    created_at: Timestamp
    text: str
    task_id: str | None = None


class TreeHead(Wire, frozen=True, kw_only=True):
    """Where an agent stands in the tree: at its head, or at the nearest node above it that is not left out."""

    agent_id: str
    node_id: str | None


class ConversationTreeParams(Wire, frozen=True, kw_only=True):
    conversation_id: str


class ConversationTreeResult(Wire, frozen=True, kw_only=True):
    """All nodes that a person or an agent wrote, oldest first, and where the agents' heads are.

    Results of tools and remarks of the engine are left out: `parent_id` is the nearest one that is not.
    """

    nodes: tuple[TreeNode, ...]
    agents: tuple[Agent, ...]
    tasks: tuple[Task, ...]
    heads: tuple[TreeHead, ...] = ()


class ConversationSearchParams(Wire, frozen=True, kw_only=True):
    """Full text over all nodes.

    Words are joined by AND, "quotes" make a phrase, the last word may be a prefix from 3 letters on. Operators narrow
    it, with or without words: `from:user`, `from:agent` or an agent's name, `in:` a title's words or a conversation's
    id, `tool:shell`, `before:` and `after:` a day (2026-11-01), a month or a year; `after:` includes what it names.
    A value with blanks stands in quotes.
    """

    text: str
    limit: int = 20
    conversation_id: str | None = None


class SearchHit(Wire, frozen=True, kw_only=True):
    """One node that matches; `snippet` marks the words with \\u2068 and \\u2069.

    `before` and `after` are how the nodes around it on its branch begin, in one line. It is the `place`-th of `of`
    nodes of its conversation, in the order in which they were written.
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
    """`titles` are the conversations whose title has the words, newest change first; archived ones too.

    `words` is what was asked without its operators. `advice` says what to write where an operator's value means
    nothing; then nothing was looked for.
    """

    hits: tuple[SearchHit, ...]
    titles: tuple[Conversation, ...] = ()
    words: str = ""
    advice: str = ""


class ConversationChangeParams(Wire, frozen=True, kw_only=True):
    """Only the fields given are changed.

    A node that is kept stays in the model's context whatever is summarised, with the results or the call it goes with,
    until it is released. `workspace` is the absolute path of the folder that its next tasks work in.
    """

    conversation_id: str
    title: str | None = None
    archived: bool | None = None
    pinned: bool | None = None
    turn_taking: TurnTaking | None = None
    keep_node_id: str | None = None
    release_node_id: str | None = None
    workspace: str | None = None


class ConversationChangeResult(Wire, frozen=True, kw_only=True):
    conversation: Conversation


class AgentChatParams(Wire, frozen=True, kw_only=True):
    """Ask an agent for one reply at its head: a task in `chat` mode.

    `version` and `node_id` are what its caller saw of the agent: its version, and its head. Where the agent has moved
    on since, or works, nothing is lost and nobody waits: an agent of its own answers beside it, after `node_id`, or
    where that is null after the place from which the agent's last task began. `task_id` may be chosen by the client;
    the same one again gives the chat that is there. The rest is as in `task/start`.
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
    approve: ApproveMode = "ask"


class AgentChatResult(Wire, frozen=True, kw_only=True):
    """`position` is the message that was asked. `branched`: somebody was first, `agent` answers beside the one asked.

    Who was first learns it by the `agentUpdate` of that agent, and by a remark at the head of its branch.
    """

    agent: Agent
    task: Task
    position: Position
    branched: bool


class TaskCompareModelsParams(Wire, frozen=True, kw_only=True):
    """Ask 2 to 8 models the same at once: one message, and a branch for the reply of each.

    The first is asked through the agent that `start` is for, each other through an agent beside it. `start.model` is
    not read; `start.task_id` names the first task, with `_2`, `_3` … added the others. A `start.api_key` goes to models
    of the first one's provider only, a `start.api_base` to models of `openai_compatible`.
    """

    models: tuple[str, ...]
    start: TaskStartParams


class TaskCompareModelsResult(Wire, frozen=True, kw_only=True):
    """In the order of the models. `node_id` is the message that all of them answer."""

    tasks: tuple[Task, ...]
    node_id: str


class ConversationCompareParams(Wire, frozen=True, kw_only=True):
    """Two branches of one conversation, each named by a node at its end; at most `limit` nodes of each are given."""

    a_node_id: str
    b_node_id: str
    limit: int = 500


class BranchSide(Wire, frozen=True, kw_only=True):
    """What one branch has and the other has not: its nodes from where they part, oldest first.

    `count` is how many there are in all. `usage` is what its replies took, `tasks` are those that wrote in it.
    """

    nodes: tuple[Node, ...]
    count: int
    tasks: tuple[Task, ...]
    usage: Usage


class ConversationCompareResult(Wire, frozen=True, kw_only=True):
    """`ancestor_id` is the last node that both have, null where they have none."""

    conversation_id: str
    ancestor_id: str | None
    a: BranchSide
    b: BranchSide


TASK_COMPARE_MODELS = Method(
    "task/compare_models",
    TaskCompareModelsParams,
    TaskCompareModelsResult,
    True,
    "Ask several models the same at once.",
)

CONVERSATION_LIST = Method(
    "conversation/list",
    ConversationListParams,
    ConversationListResult,
    False,
    "A page of conversations.",
)

CONVERSATION_GET = Method(
    "conversation/get",
    ConversationGetParams,
    ConversationGetResult,
    False,
    "One conversation.",
)

CONVERSATION_NODES = Method(
    "conversation/nodes",
    ConversationNodesParams,
    ConversationNodesResult,
    False,
    "A page of a branch.",
)

CONVERSATION_SEARCH = Method(
    "conversation/search",
    ConversationSearchParams,
    ConversationSearchResult,
    False,
    "Full-text search over all nodes.",
)

CONVERSATION_CHANGE = Method(
    "conversation/change",
    ConversationChangeParams,
    ConversationChangeResult,
    True,
    "Rename, archive, pin.",
)

CONVERSATION_TREE = Method(
    "conversation/tree",
    ConversationTreeParams,
    ConversationTreeResult,
    False,
    "All branches of a conversation.",
)

CONVERSATION_COMPARE = Method(
    "conversation/compare",
    ConversationCompareParams,
    ConversationCompareResult,
    False,
    "Two branches, from where they part.",
)

AGENT_CHAT = Method("agent/chat", AgentChatParams, AgentChatResult, True, "Ask an agent for one reply.")
