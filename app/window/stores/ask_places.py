"""Where asks stand among the loaded nodes of a branch: each after the node that raised it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from app.protocol.asks import Ask
from app.protocol.conversations import Node
from app.window.rows import AskRow, Row


class AskPlaces:
    """`order` and `nodes` are the branch's own, and change with it: `place_all` then, or `place_lost` for one node."""

    def __init__(self, order: Sequence[str], nodes: Mapping[str, Node]) -> None:
        self._order = order
        self._nodes = nodes
        self._asks: dict[str, Ask] = {}
        self._at: dict[str, list[str]] = {}
        self._others: dict[str, tuple[Ask, ...]] = {}
        self._lost: set[str] = set()  # asks whose node is not loaded

    def put(self, ask: Ask) -> Sequence[str]:
        """Take an ask; the node whose rows show it, if it is loaded."""
        known = self._asks.get(ask.id)
        if known is not None and ask.status == "waiting":
            return ()  # read before it was settled, or said again
        self._asks[ask.id] = ask
        place = self._place(ask)
        return [place] if place else []

    def put_others(self, ask_id: str, others: tuple[Ask, ...]) -> Sequence[str]:
        """What waits for just the same as this ask."""
        if self._others.get(ask_id, ()) == others:
            return ()
        self._others[ask_id] = others
        return [node_id for node_id, ask_ids in self._at.items() if ask_id in ask_ids]

    def at(self, node_id: str) -> list[Ask]:
        """The asks that a node raised, oldest first."""
        asks = [self._asks[ask_id] for ask_id in self._at.get(node_id, ())]
        return sorted(asks, key=lambda ask: (ask.created_at, ask.id))

    def with_others(self, row: Row) -> Row:
        """The row with what waits for the same, if it is of an ask that waits."""
        if not isinstance(row, AskRow) or row.ask.status != "waiting":
            return row
        return replace(row, others=self._others.get(row.ask.id, ()))

    def place_all(self) -> None:
        self._at.clear()
        self._lost.clear()
        for ask in self._asks.values():
            self._place(ask)

    def place_lost(self, node: Node) -> None:
        """After a loss of the line asks are replayed before the nodes that they belong to."""
        for ask_id in tuple(self._lost):
            if self._asks[ask_id].task_id == node.task_id:
                self._place(self._asks[ask_id])

    def _place(self, ask: Ask) -> str | None:
        """The node after which it was raised: for a call the reply that has it."""
        for node_id in self._candidates(ask):
            node = self._nodes[node_id]
            if node.task_id == ask.task_id and node.created_at <= ask.created_at and _can_raise(node, ask):
                placed = self._at.setdefault(node_id, [])
                if ask.id not in placed:
                    placed.append(ask.id)
                self._lost.discard(ask.id)
                return node_id
        self._lost.add(ask.id)
        return None

    def _candidates(self, ask: Ask) -> Iterable[str]:
        known = next((node_id for node_id, asks in self._at.items() if ask.id in asks), None)
        return reversed(self._order) if known is None else (known,)


def _can_raise(node: Node, ask: Ask) -> bool:
    return ask.kind == "limit" or (node.role == "assistant" and node.status != "streaming")
