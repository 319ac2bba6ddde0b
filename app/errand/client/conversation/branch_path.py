"""A stored branch, read page by page from its end until it meets the other ones."""

import asyncio
from collections.abc import Sequence

from errand.client.conversation.branch import ComparedBranch
from errand.client.conversation.paging import Caller
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import CONVERSATION_NODES, ConversationNodesParams, Node

_PAGE = 100  # decoding one takes 3 to 5 ms
_MAX_TEXT = 2_000


class BranchPath:
    """The loaded part of a branch, oldest first."""

    def __init__(self, caller: Caller, conversation_id: str, branch: ComparedBranch) -> None:
        self._caller = caller
        self._conversation_id = conversation_id
        self._branch = branch
        self._pages: list[Sequence[Node]] = []  # newest first
        self._positions: dict[str, int] = {}  # index from the end, which never changes
        self.has_more = True

    async def read_more(self) -> None:
        if not self.has_more:
            return
        is_first = not self._pages
        has_agent = is_first and self._branch.agent_id is not None
        params = ConversationNodesParams(
            conversation_id=self._conversation_id,
            leaf_id=None if has_agent else self._oldest_id or self._branch.leaf_id,
            agent_id=self._branch.agent_id if has_agent else None,
            to_leaf=self._branch.to_leaf and is_first,
            before_id=self._oldest_id,
            limit=_PAGE,
        )
        page = await self._caller.call(CONVERSATION_NODES, params)
        for node in reversed(page.nodes):
            self._positions[node.id] = len(self._positions)
        self._pages.append(page.nodes)
        self.has_more = page.has_more

    def newest_common(self, others: Sequence["BranchPath"]) -> str | None:
        """The newest node that all of them have."""
        ids = (node.id for page in self._pages for node in reversed(page))
        return next((node_id for node_id in ids if all(other.has(node_id) for other in others)), None)

    def has(self, node_id: str) -> bool:
        return node_id in self._positions

    def below(self, node_id: str | None) -> list[Node]:
        return self._nodes[self._end_of(node_id) :]

    def last_text(self, node_id: str | None) -> str:
        """The beginning of the last text up to a node, on one line."""
        above = self._nodes[: self._end_of(node_id)]
        texts = (block.text for node in reversed(above) for block in node.blocks if isinstance(block, TextBlock))
        return " ".join(next((text for text in texts if text.strip()), "")[:_MAX_TEXT].split())

    @property
    def _nodes(self) -> list[Node]:
        return [node for page in reversed(self._pages) for node in page]

    @property
    def _oldest_id(self) -> str | None:
        return self._pages[-1][0].id if self._pages and self._pages[-1] else None

    def _end_of(self, node_id: str | None) -> int:
        """The index after a node; 0 without one."""
        return 0 if node_id is None else len(self._positions) - self._positions[node_id]


async def read_to_fork(paths: Sequence[BranchPath]) -> str | None:
    """Read the branches until they meet; returns the newest common node, None if they have none."""
    first, *others = paths
    while True:
        await asyncio.gather(*(path.read_more() for path in paths))
        fork_id = first.newest_common(others)
        if fork_id is not None or not any(path.has_more for path in paths):
            return fork_id
