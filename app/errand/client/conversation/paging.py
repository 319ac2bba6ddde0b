"""Loads the older pages of a branch, with their asks and tasks."""

from collections.abc import Collection
from typing import Protocol, TypeVar

from errand.client.conversation.branch import LoadedBranch
from errand.protocol.asks import ASK_LIST, AskListParams
from errand.protocol.base import Method, Wire
from errand.protocol.blocks import ToolCallBlock
from errand.protocol.conversations import (
    CONVERSATION_NODES,
    ConversationNodesParams,
    ConversationNodesResult,
    Node,
)
from errand.protocol.tasks.methods import TASK_LIST, TaskListParams

_PAGE = 500  # the engine's maximum

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)


class Caller(Protocol):
    """A client's way to call the engine, for instance a `Connection`."""

    async def call(self, method: Method[P, R], params: P) -> R: ...


class SettledLoader:
    """Loads past tasks and asks into the branch, each once: later changes arrive as events."""

    def __init__(self, caller: Caller, branch: LoadedBranch) -> None:
        self._caller = caller
        self._branch = branch
        self._cursor: str | None = None
        self._has_more_tasks = True
        self._with_asks: set[str] = set()

    async def load(self, conversation_id: str, nodes: Collection[Node]) -> None:
        """Load the tasks of these nodes, and the asks of tasks that may have raised some."""
        task_ids = {node.task_id for node in nodes if node.task_id is not None}
        while self._has_more_tasks and not all(self._branch.tasks.get(task_id) is not None for task_id in task_ids):
            await self._load_tasks(conversation_id)
        asking = {node.task_id for node in nodes if node.task_id is not None and _may_ask(node)} - self._with_asks
        if asking:
            await self._load_asks(tuple(asking))

    async def _load_tasks(self, conversation_id: str) -> None:
        """Load the next page of tasks, newest first like the nodes."""
        params = TaskListParams(conversation_id=conversation_id, limit=_PAGE, cursor=self._cursor)
        page = await self._caller.call(TASK_LIST, params)
        self._cursor = page.next_cursor
        self._has_more_tasks = page.next_cursor is not None
        for task in page.tasks:
            if self._branch.tasks.get(task.id) is None:  # otherwise an event brought a newer state
                self._branch.put_task(task)

    async def _load_asks(self, task_ids: tuple[str, ...]) -> None:
        result = await self._caller.call(ASK_LIST, AskListParams(waiting=False, task_ids=task_ids))
        for ask in result.asks:
            self._branch.asks.put(ask)
        self._with_asks.update(task_ids)


def _may_ask(node: Node) -> bool:
    """Return True for a reply with calls, and from the second turn on, when a limit may have been reached."""
    return node.turn > 1 or any(isinstance(block, ToolCallBlock) for block in node.blocks)


async def older_page(caller: Caller, branch: LoadedBranch, conversation_id: str, limit: int) -> ConversationNodesResult:
    """Return the nodes before the loaded ones."""
    params = ConversationNodesParams(
        conversation_id=conversation_id, leaf_id=branch.ids[-1], before_id=branch.ids[0], limit=limit
    )
    return await caller.call(CONVERSATION_NODES, params)
