"""Two branches of an opened conversation side by side: read when they are compared, then kept by events."""

from PySide6.QtCore import QObject, Signal

from app.protocol.blocks import TextBlock
from app.protocol.conversations import ConversationNodesParams, ConversationNodesResult, Node
from app.protocol.events import AskUpdate, Delta, Event, TaskMessage, TaskUpdate
from app.protocol.wire import CONVERSATION_NODES
from app.window.stores.compared import Compared
from app.window.stores.compared_side import ComparedSide
from app.window.stores.conversation import ConversationStore
from app.window.stores.past import Past
from app.window.stores.session import Session

_PAGE = 500  # the most that the engine gives at once
_LONGEST = 200


class ComparisonStore(QObject):
    """`loaded` when both sides show what they are, `failed` has the words for what could not be read.

    `beginning` is what was said last before they part, "" where they have nothing in common.
    """

    loaded = Signal()
    failed = Signal(str)

    def __init__(self, store: ConversationStore, session: Session, left: Compared, right: Compared) -> None:
        super().__init__()
        self.store = store
        self.sides = (ComparedSide(left), ComparedSide(right))
        self.beginning = ""
        self.is_loaded = False
        self._session = session
        self._meanwhile: list[Event] = []
        self._loads = 0
        session.event_received.connect(self._on_event)
        session.delta_received.connect(self._on_delta)
        session.resync.connect(self.load)
        store.agents.changed.connect(self._on_agents_changed)

    def load(self) -> None:
        """Read both sides, from now or anew."""
        self._loads += 1
        self.is_loaded = False
        self._meanwhile.clear()
        self._session.spawn(self._load(self._loads), self.failed.emit)

    def turn(self, number: int, compared: Compared) -> None:
        """Have one side be another branch."""
        self.sides[number].compared = compared
        self.load()

    def close(self) -> None:
        """The sides are of no use after this."""
        self._loads += 1
        self._session.event_received.disconnect(self._on_event)
        self._session.delta_received.disconnect(self._on_delta)
        self._session.resync.disconnect(self.load)
        self.store.agents.changed.disconnect(self._on_agents_changed)
        for side in self.sides:
            side.close()

    async def _load(self, number: int) -> None:
        left, right = [_Path(self._session, self._conversation_id, self._end_of(side)) for side in self.sides]
        for path in (left, right):
            await path.read_more()
        while (meeting := left.meets(right)) is None and (left.has_more or right.has_more):
            for path in (left, right):
                await path.read_more()
        paths = (left.below(meeting), right.below(meeting))
        for side, nodes in zip(self.sides, paths, strict=True):
            await Past(self._session, side.branch).load(self._conversation_id, nodes)
        for side, nodes in zip(self.sides, paths, strict=True):
            if number == self._loads:  # else it was asked for otherwise meanwhile
                await side.show(nodes, meeting, self.store.agents.speakers)
        if number != self._loads:
            return
        self.beginning = _words(left.until(meeting))
        self.is_loaded = True
        for event in self._meanwhile:
            self._put(event)
        self.loaded.emit()

    def _end_of(self, side: ComparedSide) -> str:
        """Where an agent stands by now, if it has come further."""
        agent = self.store.agents.get(side.compared.agent_id or "")
        return agent.head_id if agent is not None and agent.head_id is not None else side.compared.leaf_id

    @property
    def _conversation_id(self) -> str:
        return self.store.conversation_id or ""

    def _on_event(self, event: Event) -> None:
        if self.is_loaded:
            self._put(event)
        else:
            self._meanwhile.append(event)

    def _put(self, event: Event) -> None:
        match event:
            case TaskMessage(node=node) if node.conversation_id == self._conversation_id:
                for side in self.sides:
                    side.put_node(node, joins=side.compared.agent_id in (None, node.author, self._worker(node)))
            case TaskUpdate(task=task) if task.conversation_id == self._conversation_id:
                for side in self.sides:
                    side.put_task(task)
            case AskUpdate(ask=ask) if ask.conversation_id == self._conversation_id:
                for side in self.sides:
                    side.put_ask(ask)
            case _:
                pass

    def _worker(self, node: Node) -> str | None:
        """Whose task a node belongs to: results and remarks are not the agent's own."""
        task = self.sides[0].branch.task(node.task_id) or self.sides[1].branch.task(node.task_id)
        return task.agent_id if task is not None else None

    def _on_delta(self, delta: Delta) -> None:
        if self.is_loaded and delta.conversation_id == self._conversation_id:
            for side in self.sides:
                side.put_delta(delta)

    def _on_agents_changed(self) -> None:
        if self.is_loaded:
            for side in self.sides:
                side.name(self.store.agents.speakers)


class _Path:
    """A branch as far as it was read, from its end towards the root."""

    def __init__(self, session: Session, conversation_id: str, leaf_id: str) -> None:
        self._session = session
        self._conversation_id = conversation_id
        self._leaf_id = leaf_id
        self._nodes: list[Node] = []
        self._places: dict[str, int] = {}  # from the end, which stays
        self.has_more = True

    async def read_more(self) -> None:
        if not self.has_more:
            return
        page = await self._page(self._nodes[0].id if self._nodes else None)
        for node in reversed(page.nodes):
            self._places[node.id] = len(self._places)
        self._nodes = [*page.nodes, *self._nodes]
        self.has_more = page.has_more

    def meets(self, other: "_Path") -> str | None:
        """The newest node that both have."""
        return next((node.id for node in reversed(self._nodes) if other.has(node.id)), None)

    def has(self, node_id: str) -> bool:
        return node_id in self._places

    def below(self, node_id: str | None) -> list[Node]:
        if node_id is None:
            return self._nodes
        return self._nodes[len(self._nodes) - self._places[node_id] :]

    def until(self, node_id: str | None) -> list[Node]:
        return self._nodes[: len(self._nodes) - self._places[node_id]] if node_id is not None else []

    async def _page(self, before_id: str | None) -> ConversationNodesResult:
        params = ConversationNodesParams(
            conversation_id=self._conversation_id, leaf_id=self._leaf_id, before_id=before_id, limit=_PAGE
        )
        return await self._session.call(CONVERSATION_NODES, params)


def _words(nodes: list[Node]) -> str:
    """The beginning of what was said last in them."""
    texts = (block.text for node in reversed(nodes) for block in node.blocks if isinstance(block, TextBlock))
    return " ".join(next((text for text in texts if text.strip()), "")[:_LONGEST].split())
