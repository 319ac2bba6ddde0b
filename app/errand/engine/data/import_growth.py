"""Finds what a session of another program has gained since its conversation was imported.

Ids follow from the program's ids, so most nodes are recognised by their id alone. A reply that was imported before its
end has the same id and more blocks now: nodes never change, so that the longer one becomes a sibling with an id of its
own, and what follows stands below that.
"""

import asyncio
import hashlib
from collections.abc import Sequence, Set
from dataclasses import dataclass

import msgspec

from errand.engine.storage.database import Database
from errand.engine.storage.records.transfer import Bundle
from errand.protocol.conversations import Node


@dataclass(frozen=True, slots=True)
class Growth:
    """`nodes` are new, parents first. `head_id` is where the session stands now."""

    nodes: tuple[Node, ...]
    head_id: str | None


async def find_growth(bundle: Bundle, database: Database) -> Growth:
    """Compare a session, converted as a whole, with the conversation that has its id."""
    stored_ids = {node_id for node_id, _ in await database.nodes.links(bundle.conversation.id)}
    ends = await asyncio.to_thread(_ends_of, bundle, stored_ids)
    return await asyncio.to_thread(_growth_of, bundle, stored_ids, await database.nodes.several(ends))


def _ends_of(bundle: Bundle, stored_ids: Set[str]) -> list[str]:
    """Return the nodes imported before that no node imported before follows: only these can have grown."""
    followed = {node.parent_id for node in bundle.nodes if node.id in stored_ids}
    return [node.id for node in bundle.nodes if node.id in stored_ids and node.id not in followed]


def _growth_of(bundle: Bundle, stored_ids: Set[str], stored: Sequence[Node]) -> Growth:
    """`known` are the ids of all nodes of the conversation, `stored` the nodes of `_ends_of`."""
    before = {node.id: node for node in stored}
    longer: dict[str, str] = {}
    new: list[Node] = []
    for node in bundle.nodes:
        parent_id = longer.get(node.parent_id or "", node.parent_id)
        old = before.get(node.id)
        if old is not None and _is_longer(node, old):
            longer[node.id] = f"{node.id}-{_digest(node)}"
        node_id = longer.get(node.id, node.id)
        if node_id not in stored_ids:
            new.append(msgspec.structs.replace(node, id=node_id, parent_id=parent_id))
    head_id = bundle.agents[0].head_id if bundle.agents else None
    return Growth(tuple(new), longer.get(head_id or "", head_id))


def stands_where_imported(head_id: str | None, bundle: Bundle) -> bool:
    """Return False if somebody went on here since: the new messages are then a branch beside theirs."""
    return head_id is not None and head_id.partition("-")[0] in {node.id for node in bundle.nodes}


def _is_longer(node: Node, old: Node) -> bool:
    return len(node.blocks) > len(old.blocks) and node.blocks[: len(old.blocks)] == old.blocks


def _digest(node: Node) -> str:
    return hashlib.sha256(msgspec.json.encode(node.blocks)).hexdigest()[:12]
