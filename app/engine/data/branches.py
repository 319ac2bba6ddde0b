"""The branches of a conversation in the order in which a person reads them: the chosen one, then what leaves it."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """Nodes that follow each other, the first one after `parent_id`; None is the beginning of the conversation."""

    parent_id: str | None
    node_ids: tuple[str, ...]


def sections(links: Sequence[tuple[str, str | None]], leaf_id: str | None) -> tuple[Section, ...]:
    """The branch that ends in `leaf_id`, whole; then the others, each from where it leaves what came before.

    Every node stands in one section. `links` are ids with their parents', a node after its parent. Where several go
    on after a node, the one that was written last belongs to its section.
    """
    parents = dict(links)
    children: dict[str | None, list[str]] = {}
    for node_id, parent_id in links:
        children.setdefault(parent_id, []).append(node_id)
    chosen = _path(parents, leaf_id)
    found = [Section(None, chosen)] if chosen else []
    placed = set(chosen)
    leaving = ((parent, child) for child, parent in links if child not in placed)
    waiting = deque((parent, child) for parent, child in leaving if parent is None or parent in placed)
    while waiting:
        parent_id, node_id = waiting.popleft()
        chain = [node_id]
        while following := children.get(chain[-1]):
            waiting += [(chain[-1], other) for other in following[:-1]]
            chain.append(following[-1])
        found.append(Section(parent_id, tuple(chain)))
    return tuple(found)


def _path(parents: dict[str, str | None], leaf_id: str | None) -> tuple[str, ...]:
    path: list[str] = []
    while leaf_id is not None:
        path.append(leaf_id)
        leaf_id = parents[leaf_id]
    return tuple(reversed(path))
