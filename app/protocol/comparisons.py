"""Comparing: the same asked of several models at once, and two branches side by side."""

from app.protocol.conversations import Node
from app.protocol.struct import Wire
from app.protocol.tasks import Task, TaskStartParams
from app.protocol.usage import Usage


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
