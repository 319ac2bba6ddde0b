"""Comparisons: one message for several models, and two branches side by side."""

from errand.protocol.base import DerivedId, Method, Wire
from errand.protocol.conversations import Node
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage


class TaskCompareModelsParams(Wire, frozen=True, kw_only=True):
    """Send one message to 2 to 8 models at once; each reply gets a branch.

    The first model runs on the agent that `start` names, each other one on an agent beside it. `start.model` is
    ignored; `start.task_id` names the first task, the others append `_2`, `_3` …. `start.api_key` goes only to
    models of the first model's provider, `start.api_base` only to models of `openai_compatible`.
    """

    models: tuple[str, ...]
    start: TaskStartParams


class TaskCompareModelsResult(Wire, frozen=True, kw_only=True):
    """`tasks` has the order of the models. `node_id` is the message that all of them answer."""

    tasks: tuple[Task, ...]
    node_id: str


class ConversationCompareParams(Wire, frozen=True, kw_only=True):
    """Two branches of one conversation, each named by its last node; returns at most `limit` nodes of each."""

    a_node_id: str
    b_node_id: str
    limit: int = 500


class BranchSide(Wire, frozen=True, kw_only=True):
    """The nodes of one branch that the other does not have, from where they part, oldest first.

    `count` is the total number of these nodes. `usage` sums their replies, `tasks` are the tasks that wrote them.
    """

    nodes: tuple[Node, ...]
    count: int
    tasks: tuple[Task, ...]
    usage: Usage


class ConversationCompareResult(Wire, frozen=True, kw_only=True):
    """`ancestor_id` is the last common node, null if there is none."""

    conversation_id: str
    ancestor_id: str | None
    a: BranchSide
    b: BranchSide


TASK_COMPARE_MODELS = Method(
    "task/compare_models",
    TaskCompareModelsParams,
    TaskCompareModelsResult,
    True,
    "Send one message to several models.",
    makes=DerivedId("start.task_id", "task"),
)

CONVERSATION_COMPARE = Method(
    "conversation/compare",
    ConversationCompareParams,
    ConversationCompareResult,
    False,
    "Compare two branches from the point where they diverge.",
)

METHODS = (TASK_COMPARE_MODELS, CONVERSATION_COMPARE)
