"""What was settled in the loaded part of a conversation: its tasks and asks, read when their nodes are."""

import asyncio
from collections.abc import Collection

from app.protocol.asks import AskListParams
from app.protocol.blocks import ToolCallBlock
from app.protocol.conversations import Node
from app.protocol.tasks import TaskListParams
from app.protocol.wire import ASK_LIST, TASK_LIST
from app.window.stores.branch import Branch
from app.window.stores.session import Session

# As many as one answer of the engine holds; the end of an older task is not shown.
_MOST_TASKS = 500


class Past:
    """Puts what it reads into the branch. Nothing is read twice: what changes later comes as an event."""

    def __init__(self, session: Session, branch: Branch) -> None:
        self._session = session
        self._branch = branch
        self._has_listed = False
        self._with_asks: set[str] = set()

    async def load(self, conversation_id: str, nodes: Collection[Node]) -> None:
        """The tasks of these nodes, and what was asked in them: only a task that called tools can have asked."""
        task_ids = {node.task_id for node in nodes if node.task_id is not None}
        if not self._has_listed and any(not self._branch.knows_task(task_id) for task_id in task_ids):
            self._has_listed = True
            params = TaskListParams(conversation_id=conversation_id, limit=_MOST_TASKS)
            for task in (await self._session.call(TASK_LIST, params)).tasks:
                self._branch.put_task(task)
        asking = {node.task_id for node in nodes if node.task_id is not None and _may_ask(node)} - self._with_asks
        await asyncio.gather(*(self._load_asks(task_id) for task_id in asking))

    async def _load_asks(self, task_id: str) -> None:
        result = await self._session.call(ASK_LIST, AskListParams(waiting=False, task_id=task_id))
        for ask in result.asks:
            self._branch.put_ask(ask)
        self._with_asks.add(task_id)


def _may_ask(node: Node) -> bool:
    """True for a reply with calls, and for the later ones that follow only where a limit could be reached."""
    return node.turn > 1 or any(isinstance(block, ToolCallBlock) for block in node.blocks)
