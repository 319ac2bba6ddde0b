"""Makes a conversation of another program one of ours: with ids that come from its own, so that it is known again."""

import hashlib
import os
from datetime import UTC, datetime

from app.engine.data.arrival import in_order
from app.engine.data.files import own_workspace
from app.engine.data.foreign.conversation import ForeignConversation, ForeignNode
from app.engine.storage.personalities import ASSISTANT
from app.engine.storage.transfer import Bundle
from app.paths import Paths
from app.protocol.agents import Agent
from app.protocol.blocks import TextBlock
from app.protocol.conversations import Conversation, Node

_LONGEST_TITLE = 80
_EPOCH = datetime.fromtimestamp(0, UTC)


def settled_in(foreign: ForeignConversation, program: str, paths: Paths) -> Bundle:
    """At least one node is needed. A folder that is here too is proposed as the workspace.

    Of two nodes with one id the first counts: sessions that were gone on with repeat what they began with.
    """
    times = sorted(node.at for node in foreign.nodes if node.at is not None)
    began = foreign.created_at or (times[0] if times else _EPOCH)
    conversation_id = _id("conv", began, program, foreign.source_id or _words(foreign))
    ids = {node.id: _id("node", node.at or began, conversation_id, node.id) for node in foreign.nodes}
    agent_id = _id("agent", began, conversation_id)
    nodes = _nodes(foreign, conversation_id, agent_id, ids, began)
    head_id = _nearest(foreign.head_id, foreign, ids) or nodes[-1].id
    return Bundle(
        conversation=Conversation(
            id=conversation_id,
            title=" ".join(foreign.title.split())[:500] or _words(foreign)[:_LONGEST_TITLE] or program,
            created_at=began,
            updated_at=foreign.updated_at or (times[-1] if times else began),
            workspace=str(own_workspace(paths, conversation_id)),
            proposed_workspace=foreign.folder if _is_here(foreign.folder) else "",
        ),
        agents=[
            Agent(
                id=agent_id,
                conversation_id=conversation_id,
                personality_id=ASSISTANT.id,
                name=program,
                head_id=head_id,
                version=1,
                created_at=began,
            )
        ],
        nodes=nodes,
    )


def _nodes(
    foreign: ForeignConversation, conversation_id: str, agent_id: str, ids: dict[str, str], began: datetime
) -> list[Node]:
    first = {node.id: node for node in reversed(foreign.nodes)}
    nodes = [
        Node(
            id=ids[node.id],
            conversation_id=conversation_id,
            parent_id=_nearest(node.parent_id, foreign, ids),
            role=node.role,
            author=_author(node, agent_id),
            blocks=tuple(node.blocks),
            status="complete",
            created_at=node.at or began,
            model=node.model,
        )
        for node in first.values()
    ]
    return in_order(nodes[::-1])


def _id(kind: str, at: datetime, *names: str) -> str:
    """As our own are, with a digest in place of chance."""
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "replace")).hexdigest()
    return f"{kind}_{max(0, int(at.timestamp() * 1000)):011x}{digest[:12]}"


def _nearest(place: str | None, foreign: ForeignConversation, ids: dict[str, str]) -> str | None:
    """The node that a record stands for, or the first one before it; None at the beginning, and in a circle."""
    passed: set[str] = set()
    while place is not None and place not in ids and place not in passed:
        passed.add(place)
        place = foreign.links.get(place)
    return ids.get(place) if place is not None else None


def _author(node: ForeignNode, agent_id: str) -> str:
    match node.role:
        case "user":
            return "user"
        case "assistant":
            return agent_id
        case _:
            return "engine"


def _words(foreign: ForeignConversation) -> str:
    """How it begins: the title of one that has none."""
    texts = (block.text for node in foreign.nodes for block in node.blocks if isinstance(block, TextBlock))
    return " ".join(next(texts, "").split())[:200]


def _is_here(folder: str) -> bool:
    return folder.startswith("/") and os.path.isdir(folder)
