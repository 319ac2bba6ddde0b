"""Two branches of a conversation, told from where they part: what each has, who wrote it, and what it took."""

from collections.abc import Sequence

from app.engine.agent.live import added
from app.engine.errors import InvalidParams, NotFound
from app.engine.storage.database import Database
from app.protocol.comparisons import BranchSide, ConversationCompareParams, ConversationCompareResult
from app.protocol.conversations import Node
from app.protocol.tasks import Task
from app.protocol.usage import Usage


async def compare_branches(params: ConversationCompareParams, database: Database) -> ConversationCompareResult:
    """`NotFound` for a node that there is not, `InvalidParams` for two of different conversations."""
    a, b = await _path(params.a_node_id, database), await _path(params.b_node_id, database)
    conversation_id = a[0].conversation_id
    if b[0].conversation_id != conversation_id:
        raise InvalidParams("The two nodes are of different conversations. Only branches of one can be compared.")
    shared = _shared(a, b)
    tasks = await database.tasks.of_conversation(conversation_id)
    return ConversationCompareResult(
        conversation_id=conversation_id,
        ancestor_id=a[shared - 1].id if shared else None,
        a=_side(a[shared:], tasks, params.limit),
        b=_side(b[shared:], tasks, params.limit),
    )


async def _path(node_id: str, database: Database) -> tuple[Node, ...]:
    path = await database.nodes.path(node_id)
    if not path:
        raise NotFound(f"There is no node {node_id!r}.")
    return path


def _shared(a: Sequence[Node], b: Sequence[Node]) -> int:
    """How many nodes both begin with."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((at for at, (one, other) in pairs if one.id != other.id), min(len(a), len(b)))


def _side(nodes: Sequence[Node], tasks: Sequence[Task], limit: int) -> BranchSide:
    wrote = {node.task_id for node in nodes}
    usage = Usage()
    for node in nodes:
        usage = added(usage, node.usage) if node.usage is not None else usage
    return BranchSide(
        nodes=tuple(nodes[:limit]),
        count=len(nodes),
        tasks=tuple(task for task in reversed(tasks) if task.id in wrote),
        usage=usage,
    )
