"""What was settled in the loaded part of a conversation: its tasks and asks, read when their nodes are."""

from collections.abc import Collection

from app.protocol.asks import AskListParams
from app.protocol.blocks import ToolCallBlock
from app.protocol.conversations import Node
from app.protocol.tasks import TaskListParams
from app.protocol.wire import ASK_LIST, TASK_LIST
from app.window.stores.branch import Branch
from app.window.stores.session import Session

_PAGE = 500  # the most that the engine gives at once


class Past:
    """Puts what it reads into the branch. Nothing is read twice: what changes later comes as an event."""

    def __init__(self, session: Session, branch: Branch) -> None:
        self._session = session
        self._branch = branch
        self._cursor: str | None = None
        self._has_more_tasks = True
        self._with_asks: set[str] = set()

    async def load(self, conversation_id: str, nodes: Collection[Node]) -> None:
        """The tasks of these nodes, and what was asked in them: only a task that called tools can have asked."""
        task_ids = {node.task_id for node in nodes if node.task_id is not None}
        while self._has_more_tasks and not all(map(self._branch.knows_task, task_ids)):
            await self._load_tasks(conversation_id)
        asking = {node.task_id for node in nodes if node.task_id is not None and _may_ask(node)} - self._with_asks
        if asking:
            await self._load_asks(tuple(asking))

    async def _load_tasks(self, conversation_id: str) -> None:
        """The next page of them, newest first as the nodes are read."""
        params = TaskListParams(conversation_id=conversation_id, limit=_PAGE, cursor=self._cursor)
        page = await self._session.call(TASK_LIST, params)
        self._cursor = page.next_cursor
        self._has_more_tasks = page.next_cursor is not None
        for task in page.tasks:
            self._branch.put_task(task)

    async def _load_asks(self, task_ids: tuple[str, ...]) -> None:
        result = await self._session.call(ASK_LIST, AskListParams(waiting=False, task_ids=task_ids))
        for ask in result.asks:
            self._branch.asks.put(ask)
        self._with_asks.update(task_ids)


def _may_ask(node: Node) -> bool:
    """True for a reply with calls, and for the later ones that follow only where a limit could be reached."""
    return node.turn > 1 or any(isinstance(block, ToolCallBlock) for block in node.blocks)
