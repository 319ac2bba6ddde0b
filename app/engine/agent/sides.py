"""Two branches of a conversation, told from where they part: what each has, who wrote it, and what it took."""

from collections.abc import Mapping, Sequence

from app.engine.agent.live import added
from app.engine.errors import InvalidParams, NotFound
from app.engine.storage.database import Database
from app.protocol.comparisons import BranchSide, ConversationCompareParams, ConversationCompareResult
from app.protocol.conversations import Node
from app.protocol.tasks import Task
from app.protocol.usage import Usage

_PIECE = 100


async def compare_branches(params: ConversationCompareParams, database: Database) -> ConversationCompareResult:
    """`NotFound` for a node that there is not, `InvalidParams` for two of different conversations."""
    a, b = await _node(params.a_node_id, database), await _node(params.b_node_id, database)
    conversation_id = a.conversation_id
    if b.conversation_id != conversation_id:
        raise InvalidParams("The two nodes are of different conversations. Only branches of one can be compared.")
    parents = dict(await database.nodes.links(conversation_id))
    path_a, path_b = _path(parents, a.id), _path(parents, b.id)
    shared = _shared(path_a, path_b)
    tasks = await database.tasks.of_conversation(conversation_id)
    return ConversationCompareResult(
        conversation_id=conversation_id,
        ancestor_id=path_a[shared - 1] if shared else None,
        a=await _side(path_a[shared:], tasks, params.limit, database),
        b=await _side(path_b[shared:], tasks, params.limit, database),
    )


async def _node(node_id: str, database: Database) -> Node:
    node = await database.nodes.get(node_id)
    if node is None:
        raise NotFound(f"There is no node {node_id!r}.")
    return node


def _path(parents: Mapping[str, str | None], node_id: str | None) -> list[str]:
    path: list[str] = []
    while node_id is not None:
        path.append(node_id)
        node_id = parents[node_id]
    return path[::-1]


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    """How many nodes both begin with."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(a), len(b)))


async def _side(ids: Sequence[str], tasks: Sequence[Task], limit: int, database: Database) -> BranchSide:
    """Read in pieces: a branch may be longer than what should be in memory at once."""
    wrote: set[str | None] = set()
    shown: list[Node] = []
    usage = Usage()
    for first in range(0, len(ids), _PIECE):
        for node in await database.nodes.several(ids[first : first + _PIECE]):
            wrote.add(node.task_id)
            usage = added(usage, node.usage) if node.usage is not None else usage
            if len(shown) < limit:
                shown.append(node)
    return BranchSide(
        nodes=tuple(shown),
        count=len(ids),
        tasks=tuple(task for task in reversed(tasks) if task.id in wrote),
        usage=usage,
    )
