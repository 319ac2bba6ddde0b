"""Where a conversation goes on in several ways: what the engine told of it, and what events added since."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.protocol.conversations import Fork


@dataclass(frozen=True, slots=True)
class ForkPlace:
    """A node among its siblings, oldest first: `number` counts from 1."""

    parent_id: str | None
    number: int
    count: int
    previous_id: str | None
    next_id: str | None


class Forks:
    """Nodes are never taken away, so what was told once stays true."""

    def __init__(self) -> None:
        self._children: dict[str | None, tuple[str, ...]] = {}

    def put(self, forks: Iterable[Fork]) -> None:
        for fork in forks:
            self._children[fork.parent_id] = fork.child_ids

    def add(self, parent_id: str | None, child_id: str, shown_id: str | None) -> bool:
        """Take a node that was added below a parent of which `shown_id` is seen; False if nothing is new by it."""
        known = self._children.get(parent_id, () if shown_id is None else (shown_id,))
        if child_id in known or not known:
            return False
        self._children[parent_id] = (*known, child_id)
        return True

    def add_below(self, parent_id: str, child_id: str) -> None:
        """Take a node that was added below the end of what is seen, and is not seen."""
        known = self._children.get(parent_id, ())
        if child_id not in known:
            self._children[parent_id] = (*known, child_id)

    def below(self, node_id: str) -> tuple[str, ...]:
        """What follows a node, as far as it is known; all of it for the end of a branch."""
        return self._children.get(node_id, ())

    def place(self, parent_id: str | None, node_id: str) -> ForkPlace | None:
        """None where a node has no siblings."""
        children = self._children.get(parent_id, ())
        if len(children) < 2 or node_id not in children:
            return None
        index = children.index(node_id)
        before = children[index - 1] if index else None
        after = children[index + 1] if index + 1 < len(children) else None
        return ForkPlace(parent_id, index + 1, len(children), before, after)
